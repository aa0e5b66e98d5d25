<?php

declare(strict_types=1);

namespace DelayQueue\Client\Transport;

/** A POST. */
final class Request
{
    /**
     * @param array<string, string> $headers
     * @param float|null $timeoutSeconds how long the answer may take; null = no limit
     * @param float $connectSeconds how long the connection may take
     * @param (\Closure(): bool)|null $stop asked during the wait where the transport can: true ends it
     */
    public function __construct(
        public readonly string $url,
        public readonly array $headers,
        public readonly string $body,
        public readonly ?float $timeoutSeconds,
        public readonly float $connectSeconds,
        public readonly ?\Closure $stop = null,
    ) {
    }
}
