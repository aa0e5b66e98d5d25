<?php
// A job like any other in think-queue: app/job/CloseOrder.php

namespace app\job;

use RuntimeException;
use think\queue\Job;

class CloseOrder
{
    /** What cancel() asks for. */
    public static function tags(array $data): array
    {
        return ["order:{$data['order']}"];
    }

    /** Yours: UPDATE orders SET state = 'closed' WHERE id = ? AND state = 'unpaid'. Twice does no harm. */
    public function fire(Job $job, array $data): void
    {
        if (!ctype_digit($data['order'])) {
            throw new RuntimeException("no order {$data['order']}");
        }
        echo "closed order {$data['order']}\n";
        $job->delete();
    }
}
