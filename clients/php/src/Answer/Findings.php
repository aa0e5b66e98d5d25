<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** The jobs found among the `looked` that were searched. */
final class Findings
{
    /**
     * @param list<FoundJob> $jobs
     * @param string $cursor to search on; '' = all have been searched
     */
    public function __construct(
        public readonly array $jobs,
        public readonly int $looked,
        public readonly string $cursor,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            jobs: $data->list('jobs', FoundJob::from(...)),
            looked: $data->int('looked'),
            cursor: $data->string('cursor'),
        );
    }
}
