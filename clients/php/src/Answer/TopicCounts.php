<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** A topic and its exact counts. */
final class TopicCounts
{
    /**
     * @param float|null $oldestReadyAge seconds since its oldest ready job was due
     * @param bool|float $paused true = until it is resumed; a number = until then, in unix seconds
     * @param array<int, int>|null $dueSoon if asked for: how many jobs fall due within 60, 300 and 3600 seconds
     * @param TopicRates|null $rates if asked for and known
     * @param TopicGroups|null $groups if a job that is ready or reserved is of one
     */
    public function __construct(
        public readonly string $topic,
        public readonly int $delayed,
        public readonly int $ready,
        public readonly int $reserved,
        public readonly int $buried,
        public readonly ?float $oldestReadyAge,
        public readonly bool|float $paused,
        public readonly ?Limits $limit,
        public readonly ?array $dueSoon,
        public readonly ?TopicRates $rates,
        public readonly ?TopicGroups $groups,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            topic: $data->string('topic'),
            delayed: $data->int('delayed'),
            ready: $data->int('ready'),
            reserved: $data->int('reserved'),
            buried: $data->int('buried'),
            oldestReadyAge: $data->floatOrNull('oldest_ready_age'),
            paused: $data->boolOrFloat('paused'),
            limit: $data->has('limit') ? Limits::from($data->object('limit')) : null,
            dueSoon: $data->has('due_soon') ? $data->countOfEachNumber('due_soon') : null,
            rates: $data->has('rates') ? TopicRates::from($data->object('rates')) : null,
            groups: $data->has('groups') ? TopicGroups::from($data->object('groups')) : null,
        );
    }
}
