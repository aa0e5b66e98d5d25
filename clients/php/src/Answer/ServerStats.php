<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** A server process: jobs since its start, lateness in the last minute in seconds. */
final class ServerStats
{
    /**
     * @param int $waiting polls
     * @param int $callLimit calls of jobs that it makes at once to one host, 0 = none
     */
    public function __construct(
        public readonly string $name,
        public readonly string $version,
        public readonly float $started,
        public readonly float $seen,
        public readonly int $pushed,
        public readonly int $delivered,
        public readonly int $finished,
        public readonly int $waiting,
        public readonly ?float $latenessP50,
        public readonly ?float $latenessP99,
        public readonly int $callLimit,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            name: $data->string('name'),
            version: $data->string('version'),
            started: $data->float('started'),
            seen: $data->float('seen'),
            pushed: $data->int('pushed'),
            delivered: $data->int('delivered'),
            finished: $data->int('finished'),
            waiting: $data->int('waiting'),
            latenessP50: $data->floatOrNull('lateness_p50'),
            latenessP99: $data->floatOrNull('lateness_p99'),
            callLimit: $data->int('call_limit', 0),
        );
    }
}
