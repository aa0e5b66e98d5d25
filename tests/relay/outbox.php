<?php
// Puts jobs into an outbox as programs do: php outbox.php LIBRARY DATABASE TABLE TOPIC
//
// LIBRARY: pdo, eloquent or doctrine. DATABASE: JSON with `kind`, `port`, `user` and `name`. Prints the job's id.

error_reporting(E_ALL & ~E_DEPRECATED & ~E_USER_DEPRECATED); // Debian's Laravel is older than its PHP

require 'vendor/autoload.php';

use DelayQueue\Client\NewJob;
use DelayQueue\Client\Outbox;
use Doctrine\DBAL\DriverManager;
use Illuminate\Database\Capsule\Manager;

[, $library, $json, $table, $topic] = $argv;
$database = json_decode($json);
$driver = ['mariadb' => 'mysql', 'postgresql' => 'pgsql'][$database->kind];
$charset = ['mariadb' => 'utf8mb4', 'postgresql' => 'utf8'][$database->kind]; // MariaDB's default here is latin1
$login = ['host' => '127.0.0.1', 'port' => $database->port, 'password' => '', 'charset' => $charset];

// what begins, commits and rolls back, and what the outbox takes
switch ($library) {
    case 'pdo':
        $options = $driver === 'mysql' ? ";charset=$charset" : '';
        $owner = new PDO("$driver:host=127.0.0.1;port=$database->port;dbname=$database->name$options", $database->user);
        $outbox = new Outbox($owner, $table);
        break;
    case 'eloquent':
        $manager = new Manager();
        $manager->addConnection($login + [
            'driver' => $driver, 'database' => $database->name, 'username' => $database->user,
        ]);
        $manager->setAsGlobal();
        $owner = $manager->getConnection();
        $outbox = new Outbox(Manager::insert(...), $table); // as the facade does it, DB::insert(...)
        break;
    case 'doctrine':
        $owner = DriverManager::getConnection($login + [
            'driver' => "pdo_$driver", 'dbname' => $database->name, 'user' => $database->user,
        ]);
        $outbox = new Outbox($owner->executeStatement(...), $table);
        break;
}

$job = new NewJob(
    topic: $topic,
    body: ['order' => 7, 'question' => 'où ? 订单'],
    id: "{customer-7}$topic-php",
    due: 4000000000.125,
    ttr: '1m',
    tags: ['user:7', "it's ?"],
    retry: ['1m', 2],
    ifExists: 'replace',
    maxWait: '10m',
    retain: '1h',
    expire: '1d',
    priority: 7,
    group: 'customer-7',
    call: ['url' => 'https://example.com/', 'headers' => [], 'timeout' => '9s'],
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
);

$owner->beginTransaction();
$outbox->push(new NewJob($topic, id: "$topic-rolled-back"));
$owner->rollBack();

$owner->beginTransaction();
$outbox->push($job);
$outbox->push(new NewJob($topic, id: "$topic-later", delay: '1.5h'));
$outbox->push(new NewJob($topic, id: '*', delay: 60, group: ' customer-8'));
$outbox->push(new NewJob($topic, delay: 60, group: 'customer-8'));
$outbox->push(new NewJob($topic, id: "$topic-cancelled", delay: 60));
$outbox->cancel("$topic-cancelled");
$outbox->push(new NewJob($topic, id: "$topic-tagged", delay: 60, tags: [$topic]));
$outbox->cancelTag($topic, $topic);
$owner->commit();
