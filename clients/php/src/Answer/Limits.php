<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** How fast and how many at once the jobs of a topic are handed out; null = no limit. */
final class Limits
{
    /**
     * @param float|null $buriedRetain seconds that buried jobs are kept; null = as the server's setting says
     * @param int|null $groupConcurrency of each group
     * @param bool $groupOrder whether the jobs of a group are handed out in strict order
     * @param string|null $buriedTo the topic to which each of them is reported; null = to none
     * @param bool $declared whether they are from a config file
     * @param int|null $maxJobs jobs that it may have; null = any number
     * @param string|null $whenFull what a push to a full topic does; null = it is refused
     */
    public function __construct(
        public readonly ?float $rate,
        public readonly ?int $burst,
        public readonly ?int $concurrency,
        public readonly ?int $groupConcurrency,
        public readonly bool $groupOrder,
        public readonly ?float $buriedRetain,
        public readonly ?string $buriedTo,
        public readonly bool $declared,
        public readonly ?int $maxJobs,
        public readonly ?string $whenFull,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            rate: $data->floatOrNull('rate'),
            burst: $data->intOrNull('burst'),
            concurrency: $data->intOrNull('concurrency'),
            groupConcurrency: $data->intOrNull('group_concurrency'),
            groupOrder: $data->bool('group_order', false),
            buriedRetain: $data->floatOrNull('buried_retain'),
            buriedTo: $data->stringOrNull('buried_to'),
            declared: $data->bool('declared'),
            maxJobs: $data->intOrNull('max_jobs'),
            whenFull: $data->stringOrNull('when_full'),
        );
    }
}
