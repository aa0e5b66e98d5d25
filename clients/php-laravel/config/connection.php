<?php

declare(strict_types=1);

// The connection "delay-queue" of config/queue.php: what an application sets there counts before this.

return [
    'driver' => 'delay-queue',
    'url' => env('DELAYQUEUE_URL', 'http://localhost:9277'),
    'token' => env('DELAYQUEUE_TOKEN'),
];
