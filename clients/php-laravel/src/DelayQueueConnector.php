<?php

declare(strict_types=1);

namespace DelayQueue\Laravel;

use DelayQueue\Client\Client;
use DelayQueue\Client\Internal\Settings;
use Illuminate\Queue\Connectors\ConnectorInterface;

/** Makes a connection of the settings in config/queue.php. */
final class DelayQueueConnector implements ConnectorInterface
{
    private const DEFAULTS = [
        'url' => null,
        'token' => null,
        'queue' => 'default', // the topic of jobs that name none
        'ttr' => 90, // seconds that a worker may take; more than --timeout of queue:work
        'wait' => 5, // seconds that a worker waits for a job: an idle one stops within this
        'after_commit' => false, // true: a job of a transaction is pushed once that has committed
    ];

    /** @param array<string, mixed> $config */
    public function connect(array $config): DelayQueue
    {
        $config += self::DEFAULTS;

        return new DelayQueue(
            self::client($config),
            Settings::topic($config, 'queue'),
            (int) Settings::seconds($config, 'ttr'),
            (float) Settings::seconds($config, 'wait'),
            (bool) $config['after_commit'],
        );
    }

    /** @param array<string, mixed> $config */
    public static function client(array $config): Client
    {
        return new Client($config['url'], $config['token']);
    }
}
