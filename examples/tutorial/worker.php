<?php
require __DIR__ . '/shop.php';

for ($jobs = (int) ($argv[1] ?? PHP_INT_MAX); $jobs > 0; $jobs--) {
    while (!isset(($job = insist('pop', ['topic' => 'order-close']))['receipt'])) {
        usleep(100_000); // nothing was due for three minutes
    }
    try {
        [$verb, $message] = ['finish', close_order($job['body'])];
    } catch (Throwable $error) { // also a TypeError: any failure has to be reported to the queue
        [$verb, $message] = ['release', $error->getMessage()];
    }
    try {
        insist($verb, ['id' => $job['id'], 'receipt' => $job['receipt'], 'message' => $message]);
    } catch (QueueError $error) {
        $message = $error->getMessage(); // the job has ended meanwhile, or we were too slow and another worker has it
    }
    echo "attempt $job[attempt]: $message\n";
}
