<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** The calls of jobs to a host, by all servers: those under way, those of the last minute, and the last failure. */
final class HostCalls
{
    /**
     * @param int $limit the most at once
     * @param int $putOff jobs that found no place
     * @param float|null $took seconds that a call took on average
     * @param float|null $failedAt unix seconds
     */
    public function __construct(
        public readonly string $host,
        public readonly int $calling,
        public readonly int $limit,
        public readonly int $succeeded,
        public readonly int $failed,
        public readonly int $putOff,
        public readonly ?float $took,
        public readonly ?float $failedAt,
        public readonly string $error,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            host: $data->string('host'),
            calling: $data->int('calling'),
            limit: $data->int('limit'),
            succeeded: $data->int('succeeded'),
            failed: $data->int('failed'),
            putOff: $data->int('put_off'),
            took: $data->floatOrNull('took'),
            failedAt: $data->floatOrNull('failed_at'),
            error: $data->string('error'),
        );
    }
}
