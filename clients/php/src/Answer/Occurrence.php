<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** One time of a schedule, also as clocks in its time zone show it. */
final class Occurrence
{
    public function __construct(
        public readonly float $at,
        public readonly string $local,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            at: $data->float('at'),
            local: $data->string('local'),
        );
    }
}
