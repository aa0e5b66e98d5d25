<?php

namespace Shop;

use DelayQueue\Handler\AbstractHandler;
use RuntimeException;

class OrderHandler extends AbstractHandler
{
    /** Yours: UPDATE orders SET state = 'closed' WHERE id = ? AND state = 'unpaid'. Twice does no harm. */
    protected function perform()
    {
        if (!ctype_digit($this->body['order'])) {
            throw new RuntimeException("no order {$this->body['order']}");
        }
        echo "closed order {$this->body['order']}\n";
    }
}
