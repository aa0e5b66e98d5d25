<?php

require __DIR__ . '/vendor/autoload.php';

use DelayQueue\Client\{Client, Job, Worker};
use think\facade\Db;

(new think\App())->initialize();

return (new Worker(app(Client::class)))->on('order-close', function (Job $job) {
    $order = $job->json()['order'];
    Db::name('orders')->where(['id' => $order, 'state' => 'unpaid'])->update(['state' => 'closed']);
    echo "closed order $order\n";
}, retry: ['10s', '1m', '10m']);
