<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** A topic that needs attention, and why: "buried", "late", "paused". */
final class Attention
{
    /** @param list<string> $why */
    public function __construct(
        public readonly TopicCounts $topic,
        public readonly array $why,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            topic: TopicCounts::from($data->object('topic')),
            why: $data->strings('why'),
        );
    }
}
