<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** The store; memory in bytes. */
final class StoreStats
{
    /**
     * @param int $memoryLimit 0 = none
     * @param list<string> $warnings
     * @param list<string> $alarms why it takes no jobs, or loses some; [] from an older server
     */
    public function __construct(
        public readonly string $version,
        public readonly int $memory,
        public readonly int $memoryLimit,
        public readonly bool $durable,
        public readonly array $warnings,
        public readonly array $alarms = [],
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            version: $data->string('version'),
            memory: $data->int('memory'),
            memoryLimit: $data->int('memory_limit'),
            durable: $data->bool('durable'),
            warnings: $data->strings('warnings'),
            alarms: $data->has('alarms') ? $data->strings('alarms') : [],
        );
    }
}
