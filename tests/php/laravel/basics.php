<?php
// What a connection does: php artisan run basics.php

use App\Jobs\CloseOrder;
use DelayQueue\Client\Client;
use Illuminate\Queue\Events\JobQueued;
use Illuminate\Support\Facades\Event;
use Illuminate\Support\Facades\Queue;

class Refused extends CloseOrder
{
    public $ttr = 0; // the server refuses it
}

$queue = Queue::connection('delay-queue');
$queued = [];
Event::listen(JobQueued::class, function (JobQueued $event) use (&$queued): void {
    $queued[] = $event->id;
});

CloseOrder::dispatch('1001')->onConnection('delay-queue')->delay(now()->addMinutes(30));
$queue->later(1800, new CloseOrder('1002'));
$queue->push(new CloseOrder('1003'));
echo "delayed {$queue->delayedSize()} of {$queue->size()}, ready {$queue->pendingSize()}, reserved {$queue->reservedSize()}\n";
echo 'its oldest is ', time() - $queue->creationTimeOfOldestPendingJob() < 60 ? 'young' : 'old', "\n";
echo "cancelled {$queue->cancel('order:1002')}, {$queue->cancel('order:1001')}\n";

$job = $queue->pop();
echo "attempt {$job->attempts()}, ", $job->getJobId() === $queued[2] ? 'its id' : 'another id', "\n";
$job->release(0);
$job = $queue->pop();
echo "attempt {$job->attempts()}\n";
$job->delete();
echo "left {$queue->size()}\n";

$later = new CloseOrder('1005');
$later->delay(1800);
$queue->bulk([new CloseOrder('1004'), $later], '', 'bulk');
echo "bulk: ready {$queue->pendingSize('bulk')}, delayed {$queue->delayedSize('bulk')}, queued ", count($queued), "\n";
try {
    $queue->bulk([new CloseOrder('1006'), new Refused('1007')], '', 'bulk');
} catch (DelayQueue\Client\Exception\InvalidRequest $error) {
    echo "refused, ready {$queue->pendingSize('bulk')}\n";
}
echo "cleared {$queue->clear('bulk')}\n";

echo "id {$queue->pushRaw('{}', 'raw', ['id' => 'mine', 'delay' => '1h', 'priority' => 7, 'maxWait' => '2h'])}\n";
$raw = app(Client::class)->get('mine');
echo "{$raw->state->value}, priority $raw->priority, ttr $raw->ttr\n";
$queue->client()->delete('mine');
