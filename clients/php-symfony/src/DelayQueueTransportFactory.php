<?php

declare(strict_types=1);

namespace DelayQueue\Symfony;

use DelayQueue\Client\Client;
use DelayQueue\Client\Internal\Settings;
use Symfony\Component\Messenger\Exception\InvalidArgumentException;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;
use Symfony\Component\Messenger\Transport\TransportFactoryInterface;
use Symfony\Component\Messenger\Transport\TransportInterface;

/** Makes transports of a DSN: delayqueue://TOKEN@HOST:PORT/TOPIC?ttr=60&wait=5&tls=1, all but the host at will. */
final class DelayQueueTransportFactory implements TransportFactoryInterface
{
    private const SCHEME = 'delayqueue://';

    private const PORT = 9277;

    private const DEFAULTS = [
        'topic' => 'messages',
        'token' => null, // DELAYQUEUE_TOKEN
        'ttr' => 60, // seconds that a handler may take
        'wait' => 5, // seconds that a worker waits for a message, once all its transports are empty
        'tls' => false,
    ];

    public function __construct(private readonly WorkerTransports $workerTransports = new WorkerTransports())
    {
    }

    /** @param array<string, mixed> $options */
    public function createTransport(
        #[\SensitiveParameter] string $dsn,
        array $options,
        SerializerInterface $serializer,
    ): TransportInterface {
        $parts = parse_url($dsn);
        if ($parts === false || !isset($parts['host'])) {
            throw new InvalidArgumentException('The DSN must be delayqueue://[TOKEN@]HOST[:PORT][/TOPIC][?OPTIONS].');
        }
        if (isset($parts['pass']) || isset($parts['fragment'])) {
            throw new InvalidArgumentException(
                'The DSN has a password or a fragment: a token stands alone before the @, with %3A for a : and %23 for a #.',
            );
        }
        parse_str($parts['query'] ?? '', $query);
        $name = (string) ($options['transport_name'] ?? '');
        unset($options['transport_name']);
        $given = array_filter([
            'topic' => trim(rawurldecode($parts['path'] ?? ''), '/'),
            'token' => rawurldecode($parts['user'] ?? ''),
        ], static fn (string $value): bool => $value !== '');
        $options = $given + $query + $options; // the DSN counts first, as with other transports
        $unknown = array_diff_key($options, self::DEFAULTS);
        if ($unknown !== []) {
            throw new InvalidArgumentException(sprintf(
                'Unknown option: %s. There are %s.',
                implode(', ', array_keys($unknown)),
                implode(', ', array_keys(self::DEFAULTS)),
            ));
        }
        $options += self::DEFAULTS;
        $scheme = filter_var($options['tls'], FILTER_VALIDATE_BOOLEAN) ? 'https' : 'http';
        $url = "$scheme://{$parts['host']}:" . ($parts['port'] ?? self::PORT);

        return new DelayQueueTransport(
            new Client($url, $options['token']),
            $serializer,
            Settings::topic($options, 'topic'),
            Settings::seconds($options, 'ttr'),
            (float) Settings::seconds($options, 'wait'),
            $name,
            $this->workerTransports,
        );
    }

    /** @param array<string, mixed> $options */
    public function supports(#[\SensitiveParameter] string $dsn, array $options): bool
    {
        return str_starts_with($dsn, self::SCHEME);
    }
}
