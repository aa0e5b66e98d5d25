<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** Some of the schedules; `cursor` leads to the next page, '' on the last one. */
final class SchedulePage
{
    /** @param list<Schedule> $schedules */
    public function __construct(
        public readonly array $schedules,
        public readonly string $cursor,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            schedules: $data->list('schedules', Schedule::from(...)),
            cursor: $data->string('cursor'),
        );
    }
}
