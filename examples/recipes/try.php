<?php
require __DIR__ . '/delay_queue.php';
require __DIR__ . '/CloseOrders.php';

$orders = new CloseOrders(queue(...), function (string $order) use (&$orders) {
    echo "closed $order\n"; // yours: UPDATE orders SET state = 'closed' WHERE id = ? AND state = 'unpaid'
    $orders->stop();
});
$orders->placed('2001', 0.5);
$orders->placed('2002', 1800);
$orders->paid('2002');
$orders->work();
