<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** What somebody said about dead letters. */
final class Note
{
    /**
     * @param string $by the roles of the token, and what the log calls it
     * @param float $at when, in unix seconds
     */
    public function __construct(
        public readonly string $text,
        public readonly string $by,
        public readonly float $at,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            text: $data->string('text'),
            by: $data->string('by'),
            at: $data->float('at'),
        );
    }
}
