<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** Dead letters with one reason, with # instead of ids and long numbers. */
final class DeadLetterGroup
{
    /**
     * @param float $first when the first one was buried, in unix seconds
     * @param array<string, int> $topics how many are of which topic
     * @param list<string> $ids some of them
     * @param list<int>|null $counts if asked for: how many were buried in each step
     * @param Note|null $note what somebody said about them
     */
    public function __construct(
        public readonly string $reason,
        public readonly int $count,
        public readonly float $first,
        public readonly float $last,
        public readonly array $topics,
        public readonly array $ids,
        public readonly ?array $counts,
        public readonly ?Note $note,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            reason: $data->string('reason'),
            count: $data->int('count'),
            first: $data->float('first'),
            last: $data->float('last'),
            topics: $data->countOfEach('topics'),
            ids: $data->strings('ids'),
            counts: $data->has('counts') ? $data->ints('counts') : null,
            note: $data->has('note') ? Note::from($data->object('note')) : null,
        );
    }
}
