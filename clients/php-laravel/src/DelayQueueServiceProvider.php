<?php

declare(strict_types=1);

namespace DelayQueue\Laravel;

use DelayQueue\Client\Client;
use Illuminate\Contracts\Container\Container;
use Illuminate\Contracts\Events\Dispatcher;
use Illuminate\Queue\Events\Looping;
use Illuminate\Queue\QueueManager;
use Illuminate\Support\ServiceProvider;

/** Adds the driver and the connection "delay-queue", and the Client that it uses to the container. */
final class DelayQueueServiceProvider extends ServiceProvider
{
    private const CONNECTION = 'queue.connections.delay-queue';

    public function register(): void
    {
        $this->mergeConfigFrom(__DIR__ . '/../config/connection.php', self::CONNECTION);
        $this->app->singleton(
            Client::class,
            static fn (Container $app): Client => DelayQueueConnector::client($app->make('config')->get(self::CONNECTION)),
        );
        $this->callAfterResolving('queue', static function (QueueManager $manager): void {
            $manager->addConnector('delay-queue', static fn (): DelayQueueConnector => new DelayQueueConnector());
        });
    }

    public function boot(Dispatcher $events): void
    {
        $events->listen(Looping::class, function (Looping $event): void {
            $connection = $this->app->make('queue')->connection($event->connectionName);
            if ($connection instanceof DelayQueue) {
                $connection->expect(explode(',', $event->queue));
            }
        });
    }
}
