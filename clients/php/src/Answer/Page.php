<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** Some of the jobs; `cursor` leads to the next page, '' on the last one. */
final class Page
{
    /** @param list<JobDetails> $jobs */
    public function __construct(
        public readonly array $jobs,
        public readonly string $cursor,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            jobs: $data->list('jobs', JobDetails::from(...)),
            cursor: $data->string('cursor'),
        );
    }
}
