<?php
// Pays a refund, once, however often its job comes: php pay_once.php DSN

require __DIR__ . '/delay_queue.php';

/** Pays, or returns false: it is paid already. */
function pay(PDO $database, string $job, int $customer, int $cents): bool
{
    $database->beginTransaction();
    try {
        $database->prepare('INSERT INTO done (job) VALUES (?)')->execute([$job]); // its primary key
    } catch (PDOException $error) {
        $database->rollBack();
        if (!str_starts_with($error->getCode(), '23')) { // not "the key exists": 23000, in PostgreSQL 23505
            throw $error;
        }
        return false;
    }
    $database->prepare('UPDATE balances SET cents = cents + ? WHERE customer = ?')->execute([$cents, $customer]);
    return $database->commit(); // both, or neither
}

$dsn = $argv[1] ?? throw new InvalidArgumentException('php pay_once.php DSN');
$database = new PDO($dsn, options: [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
$job = insist('pop', ['topic' => 'refund']) ?? exit("no refund is due\n");
$held = ['id' => $job['id'], 'receipt' => $job['receipt']];
try {
    $refund = json_decode($job['body'], true, flags: JSON_THROW_ON_ERROR);
    $paid = pay($database, $job['id'], $refund['customer'], $refund['cents']);
} catch (Throwable $error) {
    insist('release', $held + ['message' => $error->getMessage()]);
    throw $error;
}
echo $paid ? "paid $job[id]\n" : "$job[id] is paid already\n";
insist('finish', $held);
