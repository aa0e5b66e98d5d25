<?php
// Chains, batches and failed jobs: php artisan run bus.php

use App\Jobs\CloseOrder;
use DelayQueue\Client\Job;
use DelayQueue\Laravel\DelayQueueJob;
use Illuminate\Bus\Batchable;
use Illuminate\Support\Facades\Artisan;
use Illuminate\Support\Facades\Bus;
use Illuminate\Support\Facades\DB;
use Illuminate\Support\Facades\Queue;

class Charge extends CloseOrder
{
    use Batchable;

    public $ttr = 600;

    public $messageGroup = 'customer-3';
}

class Dies extends DelayQueueJob // at the worst moment
{
    public function delete()
    {
        throw new RuntimeException('killed');
    }
}

class Refused extends Charge
{
    public $ttr = 0; // the server refuses it
}

$queue = Queue::connection('delay-queue');
$client = $queue->client();

/** Works on the next job; if `$dies`, the worker dies after the work, and the job is delivered again. */
function work(bool $dies = false): void
{
    global $client;
    $job = popped();
    $class = $dies ? Dies::class : DelayQueueJob::class;
    try {
        (new $class(app(), $client, $job, 'delay-queue'))->fire();
    } catch (RuntimeException $error) {
        echo "{$error->getMessage()}\n";
        $client->release($job);
    }
}

function popped(): Job
{
    return $GLOBALS['client']->pop('default', wait: 5);
}

/** The jobs of the server. */
function left(): string
{
    return "{$GLOBALS['queue']->pendingSize()} ready, {$GLOBALS['queue']->delayedSize()} delayed";
}

echo "chain:\n";
Bus::chain([new CloseOrder('2001'), (new CloseOrder('2002'))->delay(1800), new CloseOrder('2003')])->onConnection('delay-queue')->dispatch();
work();
echo left() . "\n";
echo "cancelled {$queue->cancel('order:2002')}, " . left() . "\n"; // and 2003 with it
Bus::chain([new CloseOrder('2001'), new CloseOrder('2002')])->onConnection('delay-queue')->dispatch();
work(true);
work();
work();
work();
echo left() . "\n";

echo "batch:\n";
$said = fn ($batch) => print("$batch->pendingJobs pending\n");
$all = fn () => [new Charge('3001'), (new Charge('3002'))->delay(1800)];
$batch = Bus::batch($all())->onConnection('delay-queue')->dispatch();
echo left() . "\n";
work();
$said($batch->fresh());
echo "cancelled {$queue->cancel('order:3002')}\n";
$said($batch->fresh());
$batch = Bus::batch($all())->then(fn () => print("then\n"))->onConnection('delay-queue')->dispatch();
work(true); // counted, and counted again
work();
$said($batch->fresh());
$queue->cancel('order:3002');
try {
    Bus::batch([new Charge('3001'), new Refused('3001')])->onConnection('delay-queue')->dispatch();
} catch (DelayQueue\Client\Exception\InvalidRequest $error) {
    echo 'refused, batches ', DB::table('job_batches')->count(), ', ' . left() . "\n";
}
work();

echo "failed:\n";
$queue->push(new Charge('3003'));
$first = popped();
app('queue.failer')->log( // as queue:work does
    'delay-queue',
    'default',
    $first->body,
    new RuntimeException('no order 3003'),
);
$client->finish($first);
echo left() . "\n";
Artisan::call('queue:retry', ['id' => ['all']]);
echo left() . ', rows ' . DB::table('failed_jobs')->count() . "\n";
$again = popped();
$ttr = $client->get($again->id)->ttr;
echo "attempt $again->attempt, ttr $ttr, group $again->group, " . ($again->id === $first->id ? 'the same id' : 'another id') . "\n";
echo "cancelled {$queue->cancel('order:3003')}\n";
