<?php

require __DIR__ . '/vendor/autoload.php';

use DelayQueue\Client\{Client, Job, Worker};

return (new Worker(new Client('http://localhost:9277')))->on('order-paid', [
    'invoice' => fn (Job $job) => "I-{$job->json()['order']}",
    'points' => fn () => throw new RuntimeException('the bonus system is down'),
    'mail' => fn (Job $job) => print("sent {$job->results['invoice']->message}\n"),
], stopOnFailure: false);
