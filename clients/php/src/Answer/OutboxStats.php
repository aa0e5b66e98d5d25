<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** An outbox, as one of its relays told it. */
final class OutboxStats
{
    /**
     * @param int $failed rows that cannot be carried out
     * @param string $reason of the newest of them
     * @param float $oldestAge seconds that the oldest row has waited, 0 = none waits
     * @param float $seen unix seconds
     */
    public function __construct(
        public readonly string $name,
        public readonly int $failed,
        public readonly string $reason,
        public readonly float $oldestAge,
        public readonly float $seen,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            name: $data->string('name'),
            failed: $data->int('failed'),
            reason: $data->string('reason'),
            oldestAge: $data->float('oldest_age'),
            seen: $data->float('seen'),
        );
    }
}
