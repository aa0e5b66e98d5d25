<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** How many jobs fall due in each step, the first at `start`. */
final class Forecast
{
    /** @param list<int> $counts */
    public function __construct(
        public readonly float $start,
        public readonly float $step,
        public readonly array $counts,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            start: $data->float('start'),
            step: $data->float('step'),
            counts: $data->ints('counts'),
        );
    }
}
