<?php
// Pushes a job for each unpaid order that has none yet: php push_unpaid_orders.php DSN [USER [PASSWORD]]

require __DIR__ . '/delay_queue.php';

const CLOSED_AFTER = 1800; // seconds

[, $dsn, $user, $password] = $argv + [null, null, null, null];
$dsn ?? throw new InvalidArgumentException('php push_unpaid_orders.php DSN [USER [PASSWORD]]');
$database = new PDO($dsn, $user, $password, [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
// placed_at: unix time. If it is a DATETIME in MySQL, select UNIX_TIMESTAMP(placed_at) AS placed_at
$unpaid = $database->query("SELECT id, placed_at FROM orders WHERE state = 'unpaid'")->fetchAll(PDO::FETCH_ASSOC);
$refused = 0;
foreach (array_chunk($unpaid, 500) as $orders) {
    $results = queue('push', array_map(fn (array $order) => [
        'topic' => 'order-close',
        'id' => "close-$order[id]",
        'due' => (int) $order['placed_at'] + CLOSED_AFTER, // one that is past is delivered at once
        'ttr' => 60,
        'body' => (string) $order['id'],
        'tags' => ["order:$order[id]"],
        'if_exists' => 'keep', // an order that has its job keeps it
    ], $orders));
    foreach ($results as $result) { // each job has a code of its own
        if ($result['code'] !== 0) {
            fwrite(STDERR, "$result[id]: $result[message]\n");
            $refused++;
        }
    }
}
echo count($unpaid), " unpaid orders\n";
exit($refused ? 1 : 0);
