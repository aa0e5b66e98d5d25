<?php
// Places an order that is closed unless it is paid in time: php order.php place ORDER TIME, or php order.php paid ORDER

require __DIR__ . '/vendor/autoload.php';

use DelayQueue\Client\Client;

[, $command, $order, $time] = $argv + [null, null, null, null];
$queue = new Client('http://localhost:9277');
match ($command) {
    // an id is one job: pushing it again replaces it
    'place' => $queue->push('order-close', ['order' => $order], id: "close-$order", delay: $time, tags: ["order:$order"]),
    'paid' => print("cancelled {$queue->cancel("order:$order")}\n"),
};
