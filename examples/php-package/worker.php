<?php

require __DIR__ . '/vendor/autoload.php';

use DelayQueue\Client\{Client, Job, Worker};

/** Yours: UPDATE orders SET state = 'closed' WHERE id = ? AND state = 'unpaid'. Twice does no harm. */
function close(string $order): void
{
    ctype_digit($order) || throw new RuntimeException("no order $order");
    echo "closed order $order\n";
}

return (new Worker(new Client('http://localhost:9277')))
    ->on('order-close', fn (Job $job) => close($job->json()['order']), retry: ['10s', '1m', '10m']);
