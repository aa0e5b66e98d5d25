<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** A group of a topic: its ready jobs, and those in hand. */
final class GroupCounts
{
    public function __construct(
        public readonly string $group,
        public readonly int $ready,
        public readonly int $reserved,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            group: $data->string('group'),
            ready: $data->int('ready'),
            reserved: $data->int('reserved'),
        );
    }
}
