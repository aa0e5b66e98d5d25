<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** What goes wrong again and again. */
final class Trouble
{
    /**
     * @param string $kind "job", "worker", "subscriber", "host", "pushes", "connections" or "lost"
     * @param string $name of the job, worker, subscriber, host or topic, or the code of refused pushes
     * @param int $count of a job the attempt, else how often it happened
     * @param float $at the last time, unix seconds
     */
    public function __construct(
        public readonly string $kind,
        public readonly string $name,
        public readonly string $topic,
        public readonly int $count,
        public readonly float $at,
        public readonly string $message,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            kind: $data->string('kind'),
            name: $data->string('name'),
            topic: $data->string('topic'),
            count: $data->int('count'),
            at: $data->float('at'),
            message: $data->string('message'),
        );
    }
}
