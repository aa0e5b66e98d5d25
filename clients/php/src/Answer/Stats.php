<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** An overview of all topics, the server processes and the store. */
final class Stats
{
    /**
     * @param list<TopicCounts> $busiest
     * @param list<Attention> $attention
     * @param list<ServerStats> $servers
     * @param int $called ready jobs with a call
     * @param list<HostCalls> $calls the hosts to which calls go, those in trouble first
     * @param list<OutboxStats> $outboxes those whose relays were heard within the last hour, first those with failed rows
     * @param list<Trouble> $troubles what goes wrong again and again, the latest first
     * @param array<string, string> $settings of the server that answers
     * @param array<string, string> $setIn where those were set that do not have their defaults
     */
    public function __construct(
        public readonly int $topics,
        public readonly int $paused,
        public readonly int $delayed,
        public readonly int $ready,
        public readonly int $reserved,
        public readonly int $buried,
        public readonly ?float $oldestReadyAge,
        public readonly array $busiest,
        public readonly array $attention,
        public readonly array $servers,
        public readonly int $called,
        public readonly array $calls,
        public readonly array $outboxes,
        public readonly array $troubles,
        public readonly StoreStats $store,
        public readonly array $settings,
        public readonly array $setIn,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            topics: $data->int('topics', 0),
            paused: $data->int('paused', 0),
            delayed: $data->int('delayed', 0),
            ready: $data->int('ready', 0),
            reserved: $data->int('reserved', 0),
            buried: $data->int('buried', 0),
            oldestReadyAge: $data->floatOrNull('oldest_ready_age'),
            busiest: $data->has('busiest') ? $data->list('busiest', TopicCounts::from(...)) : [],
            attention: $data->has('attention') ? $data->list('attention', Attention::from(...)) : [],
            servers: $data->list('servers', ServerStats::from(...)),
            called: $data->int('called', 0),
            calls: $data->has('calls') ? $data->list('calls', HostCalls::from(...)) : [],
            outboxes: $data->has('outboxes') ? $data->list('outboxes', OutboxStats::from(...)) : [],
            troubles: $data->has('troubles') ? $data->list('troubles', Trouble::from(...)) : [],
            store: StoreStats::from($data->object('store')),
            settings: $data->textOfEach('settings'),
            setIn: $data->textOfEach('set_in'),
        );
    }
}
