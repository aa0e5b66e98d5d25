<?php
// Moves what waits in Laravel's table `jobs`: php move_laravel_jobs.php DSN [USER [PASSWORD]]
//
// Stop `queue:work database` before. You can run it again at any time: a row is deleted once the server has its job,
// and a job that is pushed twice is the same job.

require __DIR__ . '/delay_queue.php';

const TTR = 90; // seconds: `retry_after` of the new connection

[, $dsn, $user, $password] = $argv + [null, null, null, null];
$database = new PDO($dsn, $user, $password, [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
$waiting = 'SELECT id, queue, payload, available_at FROM jobs ORDER BY id LIMIT 500';
$moved = 0;
while ($rows = $database->query($waiting)->fetchAll(PDO::FETCH_ASSOC)) {
    $results = queue('push', array_map(fn (array $row) => [
        'topic' => $row['queue'],
        'id' => "laravel-$row[id]",
        'due' => (int) $row['available_at'],
        'ttr' => TTR,
        'body' => $row['payload'],
    ], $rows));
    foreach ($results as $result) {
        if ($result['code'] !== 0) {
            exit("$result[id]: $result[message]\n");
        }
    }
    $ids = implode(',', array_map(fn (array $row) => (int) $row['id'], $rows));
    $database->exec("DELETE FROM jobs WHERE id IN ($ids)");
    $moved += count($rows);
}
echo "moved $moved jobs\n";
