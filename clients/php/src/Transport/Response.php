<?php

declare(strict_types=1);

namespace DelayQueue\Client\Transport;

/** An answer over HTTP. */
final class Response
{
    /** @param string $retryAfter the header of that name; '' if there is none */
    public function __construct(
        public readonly int $status,
        public readonly string $body,
        public readonly string $retryAfter = '',
    ) {
    }
}
