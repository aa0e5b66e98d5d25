<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** A failed call of a subscriber: when, with which job, and the start of the error message. */
final class FailedCall
{
    public function __construct(
        public readonly float $at,
        public readonly string $id,
        public readonly string $message,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            at: $data->float('at'),
            id: $data->string('id'),
            message: $data->string('message'),
        );
    }
}
