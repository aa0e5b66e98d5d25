<?php
// A job like any other in yii2-queue: jobs/CloseOrder.php

namespace app\jobs;

use RuntimeException;
use yii\base\BaseObject;
use yii\queue\RetryableJobInterface;

class CloseOrder extends BaseObject implements RetryableJobInterface
{
    public $order;

    public function getTtr()
    {
        return 60; // seconds: a worker that is silent for a minute is dead, another one gets the job
    }

    public function canRetry($attempt, $error)
    {
        return $attempt < 4;
    }

    /** Yours: UPDATE orders SET state = 'closed' WHERE id = ? AND state = 'unpaid'. Twice does no harm. */
    public function execute($queue)
    {
        if (!ctype_digit($this->order)) {
            throw new RuntimeException("no order $this->order");
        }
        echo "closed order $this->order\n";
    }
}
