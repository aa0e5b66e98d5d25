<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** The outcome of a call with a made-up job. */
final class Trial
{
    /**
     * @param int $status of HTTP; 0 = no answer
     * @param float $took seconds
     */
    public function __construct(
        public readonly bool $succeeded,
        public readonly int $status,
        public readonly float $took,
        public readonly string $message,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            succeeded: $data->bool('succeeded'),
            status: $data->int('status'),
            took: $data->float('took'),
            message: $data->string('message'),
        );
    }
}
