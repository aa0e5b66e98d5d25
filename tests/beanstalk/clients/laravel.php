<?php
// Laravel's own commands and its beanstalkd connection, as they are in Debian: php laravel.php HOST PORT QUEUE COMMAND...
//
// COMMAND: dispatch TASK..., kick, size, or a command of artisan such as queue:work.

error_reporting(E_ALL & ~E_DEPRECATED); // Laravel 8 on PHP 8.2
foreach (['Bus', 'Cache', 'Console', 'Events', 'Queue'] as $part) {
    require "Illuminate/$part/autoload.php";
}
require 'Pheanstalk/autoload.php';

use Illuminate\Bus\Queueable;
use Illuminate\Cache\ArrayStore;
use Illuminate\Cache\Repository;
use Illuminate\Console\Application as Artisan;
use Illuminate\Container\Container;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Queue\Capsule\Manager;
use Illuminate\Queue\Connectors\BeanstalkdConnector;
use Illuminate\Queue\Console\ClearCommand;
use Illuminate\Queue\Console\WorkCommand;
use Illuminate\Queue\Failed\NullFailedJobProvider;
use Illuminate\Queue\InteractsWithQueue;
use Illuminate\Queue\Worker;
use Symfony\Component\Console\Input\ArgvInput;
use Symfony\Component\Console\Output\ConsoleOutput;

class Task implements ShouldQueue
{
    use InteractsWithQueue, Queueable;

    public $tries = 2;
    public $backoff = 1; // second

    public function __construct(public string $name)
    {
    }

    public function handle(): void
    {
        echo "$this->name, attempt {$this->attempts()}\n";
        match ($this->name) {
            'fails' => throw new RuntimeException('no such order'),
            'kills' => posix_kill(getmypid(), SIGKILL),
            'releases' => $this->attempts() === 1 ? $this->release(1) : null,
            'buries' => $this->attempts() === 1 ? $this->job->bury() : null,
            default => null,
        };
    }

    public function failed(Throwable $error): void
    {
        echo "$this->name failed: {$error->getMessage()}\n";
    }
}

class Shown implements ExceptionHandler
{
    public function report(Throwable $e)
    {
    }

    public function shouldReport(Throwable $e)
    {
        return false;
    }

    public function render($request, Throwable $e)
    {
    }

    public function renderForConsole($output, Throwable $e)
    {
    }
}

class Application extends Container // of the framework, what the commands ask
{
    public function isDownForMaintenance()
    {
        return false;
    }

    public function environment()
    {
        return 'local';
    }
}

[, $host, $port, $name, $command] = $argv;
$laravel = new Application();
$events = new Illuminate\Events\Dispatcher($laravel);
$laravel->instance('events', $events);
$laravel->instance(Illuminate\Contracts\Container\Container::class, $laravel);
$laravel->instance(Illuminate\Contracts\Events\Dispatcher::class, $events);
$laravel->instance(Illuminate\Contracts\Bus\Dispatcher::class, new Illuminate\Bus\Dispatcher($laravel));
$capsule = new Manager($laravel);
$manager = $capsule->getQueueManager();
$manager->addConnector('beanstalkd', fn () => new BeanstalkdConnector());
// as config/queue.php has it
$capsule->addConnection(
    ['driver' => 'beanstalkd', 'host' => $host, 'port' => $port, 'queue' => $name, 'retry_after' => 90, 'block_for' => 5],
    'default'
);
$laravel->instance('queue', $manager);
$laravel->instance('queue.failer', new NullFailedJobProvider());
$queue = $manager->connection();

if ($command === 'dispatch') {
    foreach (array_slice($argv, 5) as $task) {
        $task === 'later' ? $queue->later(1, new Task($task)) : $queue->push(new Task($task));
    }
    echo "size {$queue->size()}\n";
} elseif ($command === 'kick') {
    echo "kicked {$queue->getPheanstalk()->useTube($name)->kick(10)}\n";
} else {
    $artisan = new Artisan($laravel, $events, '8');
    $worker = new Worker($manager, $events, new Shown(), fn () => false);
    $artisan->add(new WorkCommand($worker, new Repository(new ArrayStore())))->setLaravel($laravel);
    $artisan->add(new ClearCommand())->setLaravel($laravel);
    exit($artisan->run(new ArgvInput(['artisan', ...array_slice($argv, 4)]), new ConsoleOutput()));
}
