<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** How far an attempt is, as its worker has told. */
final class Progress
{
    /**
     * @param float|null $percent 0 to 100; null = it has told only the message
     * @param float $at when, in unix seconds
     */
    public function __construct(
        public readonly ?float $percent,
        public readonly string $message,
        public readonly float $at,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            percent: $data->floatOrNull('percent'),
            message: $data->string('message'),
            at: $data->float('at'),
        );
    }
}
