<?php
require __DIR__ . '/shop.php';

[, $does, $order, $unpaid_s] = $argv + [null, null, null, UNPAID_S];
match (true) {
    $does === 'orders' && is_numeric($unpaid_s) && $order !== null => place_order($order, (int) $unpaid_s),
    $does === 'pays' && $order !== null => pay_order($order),
    default => exit("php customer.php orders ORDER [SECONDS] or pays ORDER\n"),
};
