<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** A job that a worker has in hand: since when, and until when it is its own, in unix seconds. */
final class WorkerJob
{
    public function __construct(
        public readonly string $id,
        public readonly string $topic,
        public readonly float $since,
        public readonly float $until,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            id: $data->string('id'),
            topic: $data->string('topic'),
            since: $data->float('since'),
            until: $data->float('until'),
        );
    }
}
