<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** A server was "started", an "outage" of the store lasted that many seconds, a "failover" happened, the store's "clock" jumped, or somebody "did" something with the page. */
final class HistoryMark
{
    /**
     * @param string $server the one that was started; '' = it concerns all
     * @param string $by who did something with the page, and $what
     */
    public function __construct(
        public readonly float $at,
        public readonly string $kind,
        public readonly float $lasted,
        public readonly string $server,
        public readonly string $by,
        public readonly string $what,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            at: $data->float('at'),
            kind: $data->string('kind'),
            lasted: $data->float('lasted'),
            server: $data->string('server'),
            by: $data->string('by', ''),
            what: $data->string('what', ''),
        );
    }
}
