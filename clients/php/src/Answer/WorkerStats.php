<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** A worker that told its name with a poll. Times are unix seconds. */
final class WorkerStats
{
    /**
     * @param int $concurrency how many jobs it runs at once; 0 = it does not say
     * @param string $address that of its connection
     * @param list<string> $topics
     * @param float $since when it was first seen
     * @param float $seen when it was last seen
     * @param bool $gone its connection broke, and nothing was heard of it since
     * @param int $inHand jobs
     * @param float|null $until when the last of its reservations ends; null = it has no jobs in hand
     * @param list<WorkerJob> $jobs those that it has had for longest
     * @param int $finished jobs in the last minute
     * @param int $failed attempts in the last minute
     */
    public function __construct(
        public readonly string $name,
        public readonly string $version,
        public readonly string $host,
        public readonly int $pid,
        public readonly int $concurrency,
        public readonly string $address,
        public readonly array $topics,
        public readonly float $since,
        public readonly float $seen,
        public readonly bool $gone,
        public readonly int $inHand,
        public readonly ?float $until,
        public readonly array $jobs,
        public readonly int $finished,
        public readonly int $failed,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            name: $data->string('name'),
            version: $data->string('version'),
            host: $data->string('host'),
            pid: $data->int('pid'),
            concurrency: $data->int('concurrency'),
            address: $data->string('address'),
            topics: $data->strings('topics'),
            since: $data->float('since'),
            seen: $data->float('seen'),
            gone: $data->bool('gone'),
            inHand: $data->int('in_hand'),
            until: $data->floatOrNull('until'),
            jobs: $data->list('jobs', WorkerJob::from(...)),
            finished: $data->int('finished'),
            failed: $data->int('failed'),
        );
    }
}
