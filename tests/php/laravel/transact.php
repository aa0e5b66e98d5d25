<?php
// Jobs that are dispatched within a transaction: AFTER_COMMIT=1 php artisan run transact.php

use App\Jobs\CloseOrder;
use Illuminate\Support\Facades\DB;
use Illuminate\Support\Facades\Queue;

$queue = Queue::connection('delay-queue');
try {
    DB::transaction(function () use ($queue): void {
        $queue->push(new CloseOrder('1001'), '', 'transact');
        throw new RuntimeException('rolled back');
    });
} catch (RuntimeException $error) {
    echo "{$error->getMessage()}: {$queue->size('transact')}\n";
}
DB::transaction(function () use ($queue): void {
    $queue->push(new CloseOrder('1001'), '', 'transact');
    $queue->bulk([new CloseOrder('1002'), new CloseOrder('1003')], '', 'transact');
    echo "before the commit: {$queue->size('transact')}\n";
});
echo "after it: {$queue->size('transact')}\n";
$queue->clear('transact');
