<?php

declare(strict_types=1);

namespace DelayQueue\Client\Verbs;

use DelayQueue\Client\Answer\Access;
use DelayQueue\Client\Answer\History;
use DelayQueue\Client\Answer\Stats;
use DelayQueue\Client\Answer\WorkerStats;
use DelayQueue\Client\Call;
use DelayQueue\Client\Internal\Data;
use DelayQueue\Client\Internal\Fields;

/** The endpoints /history, /stats, /whoami and /workers. */
trait ServerVerbs
{
    /**
     * What happened to the jobs of a topic, or of all topics together.
     *
     * @param '3h'|'2d'|'30d'|null $span the last hours or days, in steps of a minute, 10 minutes, an hour; null = 3h
     */
    public function history(?string $topic = null, ?string $span = null): History
    {
        $request = Fields::given(['topic' => $topic, 'span' => $span]);
        $read = static fn (mixed $data): History => History::from(Data::of($data));

        return $this->send(new Call('/history', self::object($request), $read, repeatable: true));
    }

    /**
     * An overview of all topics, the server processes and the store.
     *
     * @param ?bool $counts false: the topics are not counted, and what takes that is 0, null or empty
     */
    public function stats(?bool $counts = null): Stats
    {
        $request = Fields::given(['counts' => $counts]);
        $read = static fn (mixed $data): Stats => Stats::from(Data::of($data));

        return $this->send(new Call('/stats', self::object($request), $read, repeatable: true));
    }

    /** Say that a store that was emptied or replaced is new. */
    public function acceptStore(): void
    {
        $this->send(new Call('/accept-store', new \stdClass(), self::nothing(...), repeatable: true));
    }

    /**
     * The workers that told their names, first those that are gone with jobs in hand.
     *
     * @return list<WorkerStats>
     */
    public function workers(): array
    {
        $read = static fn (mixed $data): array => Data::each($data, WorkerStats::from(...));

        return $this->send(new Call('/workers', new \stdClass(), $read, repeatable: true));
    }

    /**
     * What the token of this client allows.
     *
     * @param array{name: string, failed?: int, reason?: string, oldest_age?: float}|null $outbox from a relay: how its outbox is, for stats()
     */
    public function whoami(?array $outbox = null): Access
    {
        $request = Fields::given(['outbox' => $outbox]);
        $read = static fn (mixed $data): Access => Access::from(Data::of($data));

        return $this->send(new Call('/whoami', self::object($request), $read, repeatable: true));
    }
}
