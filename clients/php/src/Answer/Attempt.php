<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** One delivery that was released, buried or not finished in time. Times are unix seconds. */
final class Attempt
{
    public function __construct(
        public readonly int $attempt,
        public readonly float $started,
        public readonly float $ended,
        public readonly string $message,
        public readonly string $worker,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            attempt: $data->int('attempt'),
            started: $data->float('started'),
            ended: $data->float('ended'),
            message: $data->string('message'),
            worker: $data->string('worker', ''),
        );
    }
}
