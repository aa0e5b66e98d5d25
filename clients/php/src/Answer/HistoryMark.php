<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** A server was "started", an "outage" of the store lasted that many seconds, or a "failover" happened. */
final class HistoryMark
{
    /** @param string $server the one that was started; '' = it concerns all */
    public function __construct(
        public readonly float $at,
        public readonly string $kind,
        public readonly float $lasted,
        public readonly string $server,
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
        );
    }
}
