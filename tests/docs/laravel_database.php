<?php
// Laravel's own database queue, and examples/laravel after the move: php laravel_database.php put FILE | work URL

namespace Illuminate\Foundation\Bus {
    trait Dispatchable // of the application, which is not in Debian's packages
    {
    }
}

namespace {
    error_reporting(E_ALL & ~E_DEPRECATED); // Laravel 8 on PHP 8.2
    foreach (['Queue', 'Events', 'Bus', 'Database'] as $part) {
        require "Illuminate/$part/autoload.php";
    }
    foreach (['DelayQueue', 'DelayQueueJob', 'DelayQueueConnector', 'CloseOrder'] as $class) {
        require __DIR__ . "/../../examples/laravel/$class.php";
    }

    use App\Jobs\CloseOrder;
    use App\Queue\DelayQueueConnector;
    use Illuminate\Bus\Dispatcher;
    use Illuminate\Container\Container;
    use Illuminate\Database\Capsule\Manager;
    use Illuminate\Queue\DatabaseQueue;

    $container = new Container();
    $container->instance(Illuminate\Contracts\Container\Container::class, $container);
    $container->instance(Illuminate\Contracts\Bus\Dispatcher::class, new Dispatcher($container));
    [, $step, $where] = $argv;
    if ($step === 'put') {
        $database = new Manager();
        $database->addConnection(['driver' => 'sqlite', 'database' => $where]);
        $queue = new DatabaseQueue($database->getConnection(), 'jobs');
    } else {
        $queue = (new DelayQueueConnector())->connect(['url' => $where]);
    }
    $queue->setContainer($container);
    $queue->setConnectionName($step);
    if ($step === 'put') {
        $queue->push(new CloseOrder('1001'));
        $queue->later(1800, new CloseOrder('1002'));
    } else {
        $queue->pop('default')->fire();
        echo "delayed {$queue->delayedSize()} of {$queue->size()}\n";
    }
}
