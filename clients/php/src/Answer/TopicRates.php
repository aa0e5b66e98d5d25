<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** Jobs pushed, handed out and finished a second, and attempts that failed, over about the last minute. */
final class TopicRates
{
    public function __construct(
        public readonly float $pushed,
        public readonly float $delivered,
        public readonly float $finished,
        public readonly float $failed,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            pushed: $data->float('pushed'),
            delivered: $data->float('delivered'),
            finished: $data->float('finished'),
            failed: $data->float('failed'),
        );
    }
}
