<?php
require __DIR__ . '/delay_queue.php';

const UNPAID_S = 1800; // how long a customer may take to pay: half an hour

function place_order(string $order, int $unpaid_s = UNPAID_S): void
{
    if (!is_dir('orders')) {
        mkdir('orders');
    }
    file_put_contents("orders/$order", 'unpaid');
    queue('push', [
        'topic' => 'order-close',
        'id' => "close-$order",
        'delay' => $unpaid_s,
        'ttr' => 60,
        'body' => $order,
        'tags' => ["order:$order"],
        'retry' => ['delays' => ['1s', '1m', '10m']],
    ]);
}

function pay_order(string $order): void
{
    file_put_contents("orders/$order", 'paid');
    $cancelled = queue('cancel', ['tag' => "order:$order"]);
    echo "order $order is paid, $cancelled[count] job cancelled\n";
}

function close_order(string $order): string
{
    $state = @file_get_contents("orders/$order");
    if ($state === false) {
        throw new RuntimeException('the database is away');
    }
    if ($state !== 'unpaid') {
        return "order $order is $state"; // paid in the last moment, or closed already
    }
    file_put_contents("orders/$order", 'closed');
    return "order $order is closed";
}
