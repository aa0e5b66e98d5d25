<?php
// The parts of Laravel's framework that its queue commands need; the commands and the queue are Laravel's own, as Debian has them.

error_reporting(E_ALL & ~E_DEPRECATED); // Laravel 8 on PHP 8.2
foreach (['Bus', 'Cache', 'Console', 'Events', 'Queue'] as $part) {
    require "Illuminate/$part/autoload.php";
}
require 'Pheanstalk/autoload.php';

use Illuminate\Cache\ArrayStore;
use Illuminate\Cache\Repository;
use Illuminate\Console\Application as Artisan;
use Illuminate\Container\Container;
use Illuminate\Contracts\Debug\ExceptionHandler;
use Illuminate\Queue\Capsule\Manager;
use Illuminate\Queue\Connectors\BeanstalkdConnector;
use Illuminate\Queue\Console\ClearCommand;
use Illuminate\Queue\Console\WorkCommand;
use Illuminate\Queue\Failed\NullFailedJobProvider;
use Illuminate\Queue\Worker;
use Symfony\Component\Console\Input\ArgvInput;
use Symfony\Component\Console\Output\ConsoleOutput;

class Silent implements ExceptionHandler
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

class Application extends Container // the methods that the commands call
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

class Laravel
{
    private Application $application;

    private Manager $queues;

    /** $connection: what config/queue.php has for "beanstalkd". */
    public function __construct(array $connection)
    {
        $laravel = $this->application = new Application();
        $events = new Illuminate\Events\Dispatcher($laravel);
        $laravel->instance('events', $events);
        $laravel->instance(Illuminate\Contracts\Container\Container::class, $laravel);
        $laravel->instance(Illuminate\Contracts\Events\Dispatcher::class, $events);
        $laravel->instance(Illuminate\Contracts\Bus\Dispatcher::class, new Illuminate\Bus\Dispatcher($laravel));
        $this->queues = new Manager($laravel);
        $this->queues->getQueueManager()->addConnector('beanstalkd', fn () => new BeanstalkdConnector());
        $this->queues->addConnection($connection, 'beanstalkd');
        $laravel->instance('queue', $this->queues->getQueueManager());
        $laravel->instance('queue.failer', new NullFailedJobProvider());
    }

    public function queue(): Illuminate\Queue\BeanstalkdQueue
    {
        return $this->queues->getConnection('beanstalkd');
    }

    /** A command of artisan: $words are what follows "php artisan". Returns its exit code. */
    public function artisan(array $words): int
    {
        $laravel = $this->application;
        $worker = new Worker($laravel['queue'], $laravel['events'], new Silent(), fn () => false);
        $artisan = new Artisan($laravel, $laravel['events'], '8');
        $artisan->add(new WorkCommand($worker, new Repository(new ArrayStore())))->setLaravel($laravel);
        $artisan->add(new ClearCommand())->setLaravel($laravel);
        return $artisan->run(new ArgvInput(['artisan', ...$words]), new ConsoleOutput());
    }
}
