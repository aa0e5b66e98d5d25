<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** How many groups of a topic have ready jobs. */
final class TopicGroups
{
    /**
     * @param int $ready with jobs that may be taken
     * @param int $held at their limit, or behind a retry
     * @param list<GroupCounts>|null $most if asked for: the ten with the most ready jobs
     */
    public function __construct(
        public readonly int $ready,
        public readonly int $held,
        public readonly ?array $most,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            ready: $data->int('ready'),
            held: $data->int('held'),
            most: $data->has('most') ? $data->list('most', GroupCounts::from(...)) : null,
        );
    }
}
