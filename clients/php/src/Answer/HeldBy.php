<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;
use DelayQueue\Client\State;

/** The job that holds up a ready one of its group. */
final class HeldBy
{
    /**
     * @param State $state reserved: it is in hand; delayed: it waits for its retry; ready: it comes first
     * @param float|null $until when its reservation ends, or its retry is due, in unix seconds; null = it is ready
     */
    public function __construct(
        public readonly string $id,
        public readonly State $state,
        public readonly ?float $until,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            id: $data->string('id'),
            state: $data->state('state'),
            until: $data->floatOrNull('until'),
        );
    }
}
