<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** The calls of a subscriber within 24 hours. */
final class CallCounts
{
    /**
     * @param float|null $took seconds on average
     * @param list<FailedCall> $failures the last ones
     */
    public function __construct(
        public readonly int $succeeded,
        public readonly int $failed,
        public readonly ?float $took,
        public readonly array $failures,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            succeeded: $data->int('succeeded'),
            failed: $data->int('failed'),
            took: $data->floatOrNull('took'),
            failures: $data->list('failures', FailedCall::from(...)),
        );
    }
}
