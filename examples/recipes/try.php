<?php
require __DIR__ . '/queue_functions.php';
require __DIR__ . '/CloseOrders.php';

use App\Service\CloseOrders;

$orders = new CloseOrders();
$orders->placed('2001', 0.5);
$orders->placed('2002', 1800);
$orders->paid('2002');
$running = true;
$orders->work(function (string $order) use (&$running) {
    echo "closed $order\n"; // yours: UPDATE orders SET state = 'closed' WHERE id = ? AND state = 'unpaid'
    $running = false;
}, function () use (&$running) {
    return $running;
});
