<?php
// Pays refunds, each once, however often its job comes: php pay_once.php DSN

require __DIR__ . '/delay_queue.php';

$database = new PDO($argv[1], options: [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
$job = queue('pop', ['topic' => 'refund']);
$database->beginTransaction();
try {
    $database->prepare('INSERT INTO done (job) VALUES (?)')->execute([$job['id']]); // its primary key
    $database->prepare('UPDATE balances SET cents = cents + ? WHERE customer = ?')
        ->execute([json_decode($job['body'])->cents, json_decode($job['body'])->customer]);
    $database->commit(); // both, or neither
    echo "paid $job[id]\n";
} catch (PDOException $error) {
    $database->rollBack();
    if ($error->getCode() !== '23000') { // anything but "the key exists"
        throw $error;
    }
    echo "$job[id] is paid already\n";
}
queue('finish', ['id' => $job['id'], 'receipt' => $job['receipt']]);
