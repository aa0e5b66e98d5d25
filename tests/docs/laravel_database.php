<?php
// Laravel's own database queue, and examples/laravel after the move, or within a transaction of that database:
// php laravel_database.php put FILE | work URL | transact URL

namespace Illuminate\Foundation\Bus {
    trait Dispatchable // part of the framework, which is not in Debian's packages
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
    $database = new Manager();
    $database->addConnection(['driver' => 'sqlite', 'database' => $step === 'put' ? $where : ':memory:']);
    $queue = $step === 'put'
        ? new DatabaseQueue($database->getConnection(), 'jobs')
        : (new DelayQueueConnector())->connect(['url' => $where, 'after_commit' => $step === 'transact']);
    $queue->setContainer($container);
    $queue->setConnectionName($step);
    if ($step === 'put') {
        $queue->push(new CloseOrder('1001'));
        $queue->later(1800, new CloseOrder('1002'));
    } elseif ($step === 'transact') {
        $transactions = new Illuminate\Database\DatabaseTransactionsManager();
        $container->instance('db.transactions', $transactions);
        $database->getConnection()->setTransactionManager($transactions);
        try {
            $database->getConnection()->transaction(function () use ($queue) {
                $queue->push(new CloseOrder('1001'), '', 'transact');
                throw new RuntimeException('rolled back');
            });
        } catch (RuntimeException $error) {
            echo "{$error->getMessage()}: {$queue->size('transact')}\n";
        }
        $database->getConnection()->transaction(function () use ($queue) {
            $queue->push(new CloseOrder('1001'), '', 'transact');
            echo "before the commit: {$queue->size('transact')}\n";
        });
        echo "after it: {$queue->size('transact')}\n";
    } else {
        $queue->pop('default')->fire();
        echo "delayed {$queue->delayedSize()} of {$queue->size()}\n";
    }
}
