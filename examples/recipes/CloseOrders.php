<?php

namespace App\Service; // in ThinkPHP: app\service

use DelayQueue\QueueError;
use Throwable;

use function DelayQueue\queue;

class CloseOrders
{
    /** When an order is placed, after the commit. */
    public function placed(string $order, float $seconds = 1800): void
    {
        queue('push', [
            'topic' => 'order-close',
            'id' => "close-$order",
            'delay' => $seconds,
            'ttr' => 60,
            'body' => $order,
            'tags' => ["order:$order"],
            'retry' => ['delays' => ['10s', '1m', '10m']],
        ]);
    }

    public function paid(string $order): void
    {
        queue('cancel', ['tag' => "order:$order"]);
    }

    /**
     * The worker: run as many as you like. If the queue is away it ends, and what keeps it running starts it again.
     *
     * @param callable $close yours: closes the order of this id
     * @param callable $running false: end after this job
     */
    public function work(callable $close, callable $running): void
    {
        while ($running()) {
            $job = queue('pop', ['topic' => 'order-close', 'timeout' => 5]);
            if (!isset($job['receipt'])) { // nothing was due: a moment to stop
                usleep(100_000);
                continue;
            }
            [$verb, $message] = ['finish', ''];
            try {
                $close($job['body']);
            } catch (Throwable $error) {
                [$verb, $message] = ['release', $error->getMessage()];
            }
            try {
                queue($verb, ['id' => $job['id'], 'receipt' => $job['receipt'], 'message' => $message]);
            } catch (QueueError $error) {
                if (!in_array($error->getCode(), [2, 4], true)) { // these: its `ttr` was over, or it was pushed again
                    throw $error;
                }
            }
        }
    }
}
