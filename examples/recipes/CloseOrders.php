<?php

class CloseOrders
{
    private bool $running = true;

    public function __construct(private Closure $queue, private Closure $close)
    {
    }

    /** When an order is placed, after the commit. */
    public function placed(string $order, float $seconds = 1800): void
    {
        ($this->queue)('push', [
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
        ($this->queue)('cancel', ['tag' => "order:$order"]);
    }

    /** The worker: run as many as you like. If the queue is away it ends, and what keeps it running starts it again. */
    public function work(): void
    {
        while ($this->running) {
            $job = ($this->queue)('pop', ['topic' => 'order-close', 'timeout' => 5]);
            if ($job === null) {
                continue; // nothing was due: a moment to stop
            }
            $of = ['id' => $job['id'], 'receipt' => $job['receipt']];
            try {
                ($this->close)($job['body']);
            } catch (Throwable $error) {
                ($this->queue)('release', $of + ['message' => $error->getMessage()]);
                continue;
            }
            ($this->queue)('finish', $of);
        }
    }

    public function stop(): void
    {
        $this->running = false;
    }
}
