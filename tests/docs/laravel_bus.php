<?php
// Chains, batches and failed jobs of Laravel's own over examples/laravel: php laravel_bus.php URL

namespace Illuminate\Foundation\Bus {
    trait Dispatchable // part of the framework, which is not in Debian's packages
    {
    }
}

namespace {
    error_reporting(E_ALL & ~E_DEPRECATED); // Laravel 8 on PHP 8.2
    foreach (['Bus', 'Console', 'Database', 'Events', 'Queue'] as $part) {
        require "Illuminate/$part/autoload.php";
    }
    foreach (['DelayQueue', 'DelayQueueJob', 'DelayQueueConnector', 'CloseOrder'] as $class) {
        require __DIR__ . "/../../examples/laravel/$class.php";
    }

    use App\Jobs\CloseOrder;
    use App\Queue\DelayQueueConnector;
    use App\Queue\DelayQueueJob;
    use Illuminate\Bus\Batchable;
    use Illuminate\Bus\BatchFactory;
    use Illuminate\Bus\BatchRepository;
    use Illuminate\Bus\DatabaseBatchRepository;
    use Illuminate\Bus\Dispatcher;
    use Illuminate\Container\Container;
    use Illuminate\Database\Capsule\Manager as Database;
    use Illuminate\Queue\Capsule\Manager;
    use Illuminate\Queue\Console\RetryCommand;
    use Illuminate\Queue\Failed\DatabaseUuidFailedJobProvider;
    use Symfony\Component\Console\Input\ArrayInput;
    use Symfony\Component\Console\Output\NullOutput;

    function dispatch($job) // as in the framework
    {
        return Container::getInstance()->make(Illuminate\Contracts\Bus\Dispatcher::class)->dispatch($job);
    }

    class Charge extends CloseOrder
    {
        use Batchable;

        public $ttr = 600;
    }

    class Dies extends DelayQueueJob // at the worst moment
    {
        public function delete()
        {
            throw new RuntimeException('killed');
        }
    }

    $laravel = Container::getInstance();
    $events = new Illuminate\Events\Dispatcher($laravel);
    $laravel->instance('events', $events);
    $laravel->instance(Container::class, $laravel);
    $laravel->instance(Illuminate\Contracts\Container\Container::class, $laravel);
    $laravel->instance(Illuminate\Contracts\Events\Dispatcher::class, $events);
    $queues = (new Manager($laravel))->getQueueManager();
    $queues->addConnector('delay-queue', fn () => new DelayQueueConnector());
    $laravel['config']['queue.connections.delay-queue'] = ['driver' => 'delay-queue', 'url' => $argv[1], 'queue' => 'bus', 'wait' => 0];
    $laravel['config']['queue.default'] = 'delay-queue';
    $laravel->instance('queue', $queues);
    $laravel->instance(Illuminate\Contracts\Queue\Factory::class, $queues);
    $bus = new Dispatcher($laravel, fn ($connection) => $queues->connection($connection));
    $laravel->instance(Illuminate\Contracts\Bus\Dispatcher::class, $bus);
    $queue = $queues->connection('delay-queue');

    $database = new Database();
    $database->addConnection(['driver' => 'sqlite', 'database' => ':memory:']);
    $sqlite = $database->getConnection();
    $sqlite->statement('CREATE TABLE job_batches (id, name, total_jobs, pending_jobs, failed_jobs, failed_job_ids,
        options, created_at, cancelled_at, finished_at)');
    $sqlite->statement('CREATE TABLE failed_jobs (id INTEGER PRIMARY KEY, uuid, connection, queue, payload, exception, failed_at)');
    $laravel->instance(BatchRepository::class, new DatabaseBatchRepository(new BatchFactory($queues), $sqlite, 'job_batches'));
    $laravel->instance('queue.failer', new DatabaseUuidFailedJobProvider($database->getDatabaseManager(), 'default', 'failed_jobs'));

    /** What a worker is given next. */
    function popped(): ?array
    {
        return $GLOBALS['queue']->call('pop', ['topic' => 'bus', 'timeout' => 0]);
    }

    /** Works on the job; if `$dies`, the worker dies after the work, and the job is delivered again. */
    function work(bool $dies = false): void
    {
        global $laravel, $queue;
        $job = popped();
        $class = $dies ? Dies::class : DelayQueueJob::class;
        try {
            (new $class($laravel, $queue, $job, 'delay-queue'))->fire();
        } catch (RuntimeException $error) {
            echo "{$error->getMessage()}\n";
            $queue->call('release', ['id' => $job['id'], 'receipt' => $job['receipt']]);
        }
    }

    /** The jobs of the server. */
    function left(): string
    {
        return "{$GLOBALS['queue']->pendingSize()} ready, {$GLOBALS['queue']->delayedSize()} delayed";
    }

    echo "chain:\n";
    dispatch((new CloseOrder('2001'))->chain([(new CloseOrder('2002'))->delay(1800), new CloseOrder('2003')]));
    work();
    echo left() . "\n";
    echo "cancelled {$queue->cancel('order:2002')}, " . left() . "\n"; // and 2003 with it
    dispatch((new CloseOrder('2001'))->chain([new CloseOrder('2002')]));
    work(true);
    work();
    work();
    work();
    echo left() . "\n";

    echo "batch:\n";
    $said = fn ($batch) => print("$batch->pendingJobs pending\n");
    $all = fn () => [new Charge('3001'), (new Charge('3002'))->delay(1800)];
    $batch = $bus->batch($all())->dispatch();
    echo left() . "\n";
    work();
    $said($batch->fresh());
    echo "cancelled {$queue->cancel('order:3002')}\n";
    $said($batch->fresh());
    $batch = $bus->batch($all())->then(fn () => print("then\n"))->dispatch();
    work(true); // counted, and counted again
    work();
    $said($batch->fresh());
    $queue->cancel('order:3002');
    try {
        $bus->batch([new Charge('3001'), new Charge(str_repeat('x', 2000))])->dispatch();
    } catch (RuntimeException $error) {
        echo "refused, batches {$sqlite->table('job_batches')->count()}, " . left() . "\n";
    }
    work();

    echo "failed:\n";
    $queue->push(new Charge('3003'));
    $first = popped();
    $job = new DelayQueueJob($laravel, $queue, $first, 'delay-queue');
    $events->listen(Illuminate\Queue\Events\JobFailed::class, fn ($event) => $laravel['queue.failer']->log( // as queue:work
        $event->connectionName,
        $event->job->getQueue(),
        $event->job->getRawBody(),
        $event->exception
    ));
    $job->fail(new RuntimeException('no order 3003'));
    echo left() . "\n";
    $retry = new RetryCommand();
    $retry->setLaravel($laravel);
    $retry->run(new ArrayInput(['id' => ['all']]), new NullOutput());
    echo left() . ", rows {$sqlite->table('failed_jobs')->count()}\n";
    $again = popped();
    $ttr = $queue->call('get', ['id' => $again['id']])['ttr'];
    echo "attempt {$again['attempt']}, ttr $ttr, " . ($again['id'] === $first['id'] ? 'the same id' : 'another id') . "\n";
    echo "cancelled {$queue->cancel('order:3003')}\n";
}
