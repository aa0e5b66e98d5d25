<?php
// Runs examples/laravel with the queue of Laravel itself, as it is in Debian's php-illuminate-queue: php laravel.php URL

namespace Illuminate\Foundation\Bus {
    trait Dispatchable // part of the framework, which is not in that package
    {
    }
}

namespace {
    error_reporting(E_ALL & ~E_DEPRECATED); // Laravel 8 on PHP 8.2
    foreach (['Queue', 'Events', 'Bus'] as $part) {
        require "Illuminate/$part/autoload.php";
    }
    foreach (['DelayQueue', 'DelayQueueJob', 'DelayQueueConnector', 'CloseOrder'] as $class) {
        require __DIR__ . "/../../examples/laravel/$class.php";
    }

    use App\Jobs\CloseOrder;
    use App\Queue\DelayQueueConnector;
    use Illuminate\Bus\Dispatcher;
    use Illuminate\Container\Container;
    use Illuminate\Contracts\Debug\ExceptionHandler;
    use Illuminate\Queue\Capsule\Manager;
    use Illuminate\Queue\Worker;
    use Illuminate\Queue\WorkerOptions;

    class Shown implements ExceptionHandler
    {
        public function report(Throwable $e)
        {
            echo "{$e->getMessage()}\n";
        }

        public function shouldReport(Throwable $e)
        {
            return true;
        }

        public function render($request, Throwable $e)
        {
        }

        public function renderForConsole($output, Throwable $e)
        {
        }
    }

    $container = new Container();
    $events = new Illuminate\Events\Dispatcher($container);
    $container->instance('events', $events);
    $container->instance(Illuminate\Contracts\Container\Container::class, $container);
    $container->instance(Illuminate\Contracts\Events\Dispatcher::class, $events);
    $container->instance(Illuminate\Contracts\Bus\Dispatcher::class, new Dispatcher($container));
    $capsule = new Manager($container);
    $manager = $capsule->getQueueManager();
    $manager->addConnector('delay-queue', fn () => new DelayQueueConnector());
    $capsule->addConnection(['driver' => 'delay-queue', 'url' => $argv[1]], 'delay-queue');
    $queue = $manager->connection('delay-queue');

    $queue->later(1, new CloseOrder('1001'));
    $queue->later(1800, new CloseOrder('1002'));
    $queue->push(new CloseOrder('nobody'));
    echo "delayed {$queue->delayedSize()} of {$queue->size()}\n";
    echo "cancelled {$queue->cancel('order:1002')}\n";

    $worker = new Worker($manager, $events, new Shown(), fn () => false);
    foreach (range(1, 2) as $_) {
        $worker->runNextJob('delay-queue', 'default', new WorkerOptions());
    }
    echo "left {$queue->size()}\n"; // the failed one, until its next attempt
    echo "id {$queue->pushRaw('{}', 'raw', ['id' => 'mine'])}\n";
    echo "cleared {$queue->clear('raw')}, left {$queue->size('raw')}\n";
}
