<?php

namespace Shop;

use DelayQueue\Handler\AbstractHandler;
use RuntimeException;

class OrderHandler extends AbstractHandler
{
    /** Yours: UPDATE orders SET state = 'closed' WHERE id = ? AND state = 'unpaid'. Twice does no harm. */
    protected function perform()
    {
        $order = (string) ($this->body['order'] ?? '');
        if (!ctype_digit($order)) {
            throw new RuntimeException("no order $order");
        }
        echo "closed order $order\n";
    }
}
