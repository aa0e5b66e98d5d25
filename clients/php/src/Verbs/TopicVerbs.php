<?php

declare(strict_types=1);

namespace DelayQueue\Client\Verbs;

use DelayQueue\Client\Answer\DeadLetters;
use DelayQueue\Client\Answer\Findings;
use DelayQueue\Client\Answer\Forecast;
use DelayQueue\Client\Answer\Limits;
use DelayQueue\Client\Answer\Page;
use DelayQueue\Client\Answer\TakenJob;
use DelayQueue\Client\Answer\TopicCounts;
use DelayQueue\Client\Call;
use DelayQueue\Client\Internal\Data;
use DelayQueue\Client\Internal\Duration;
use DelayQueue\Client\Internal\Fields;
use DelayQueue\Client\State;
use DelayQueue\Client\Unchanged;

/** The endpoints from /cancel to /purge, on tags, ranges of due times and topics. */
trait TopicVerbs
{
    /** Ends all jobs of a tag, in one topic or in all. Returns how many. */
    public function cancel(string $tag, ?string $topic = null): int
    {
        return $this->send(new Call('/cancel', Fields::given(['tag' => $tag, 'topic' => $topic]), self::count(...)));
    }

    /**
     * A page of the jobs of a topic, a tag or both, which stay where they are.
     *
     * @param 'delayed'|'ready'|'reserved'|'buried'|'finished'|'cancelled'|'expired'|'dropped'|State|null $state
     * @param int|float|\DateTimeInterface|null $start due at this time or later
     * @param int|float|\DateTimeInterface|null $end due at this time or earlier
     * @param int|float|\DateTimeInterface|null $after due after this time
     * @param int|float|\DateTimeInterface|null $before due before this time
     * @param string|null $cursor of the page before, for which the other arguments were the same
     */
    public function listJobs(
        ?string $topic = null,
        ?string $tag = null,
        State|string|null $state = null,
        int|float|\DateTimeInterface|null $start = null,
        int|float|\DateTimeInterface|null $end = null,
        int|float|\DateTimeInterface|null $after = null,
        int|float|\DateTimeInterface|null $before = null,
        ?int $limit = null,
        ?string $cursor = null,
    ): Page {
        $request = Fields::given([
            'topic' => $topic,
            'tag' => $tag,
            'state' => Fields::value($state),
            ...Fields::range($start, $end, $after, $before),
            'limit' => $limit,
            'cursor' => $cursor,
        ]);
        $read = static fn (mixed $data): Page => Page::from(Data::of($data));

        return $this->send(new Call('/list', $request, $read, repeatable: true));
    }

    /**
     * Takes the first jobs of a range of due times out of the queue: each goes to one caller only.
     *
     * @param int|float|\DateTimeInterface|null $start due at this time or later
     * @param int|float|\DateTimeInterface|null $end due at this time or earlier
     * @param int|float|\DateTimeInterface|null $after due after this time
     * @param int|float|\DateTimeInterface|null $before due before this time
     *
     * @return list<TakenJob>
     */
    public function take(
        string $topic,
        int|float|\DateTimeInterface|null $start = null,
        int|float|\DateTimeInterface|null $end = null,
        int|float|\DateTimeInterface|null $after = null,
        int|float|\DateTimeInterface|null $before = null,
        ?int $count = null,
    ): array {
        $request = Fields::given([
            'topic' => $topic,
            ...Fields::range($start, $end, $after, $before),
            'count' => $count,
        ]);

        return $this->send(
            new Call('/take', $request, static fn (mixed $data): array => Data::each($data, TakenJob::from(...))),
        );
    }

    /** How many delayed jobs of a topic, or of all topics, fall due in each step from `start` to `end`. */
    public function forecast(
        int|float|\DateTimeInterface $start,
        int|float|\DateTimeInterface $end,
        int|float|string|\DateInterval $step = 3600,
        ?string $topic = null,
    ): Forecast {
        $request = Fields::given([
            'topic' => $topic,
            'start' => Fields::unix($start),
            'end' => Fields::unix($end),
            'step' => Duration::seconds($step),
        ]);
        $read = static fn (mixed $data): Forecast => Forecast::from(Data::of($data));

        return $this->send(new Call('/forecast', $request, $read, repeatable: true));
    }

    /**
     * Dead letters, grouped by the reason of their last failure.
     *
     * @param int|null $ids how many ids of each group to return; null = one
     * @param int|float|\DateTimeInterface|null $start from then on, count the burials of `steps` steps of this length
     */
    public function buried(
        ?string $topic = null,
        ?string $reason = null,
        ?int $ids = null,
        ?string $cursor = null,
        int|float|\DateTimeInterface|null $start = null,
        int|float|string|\DateInterval|null $step = null,
        ?int $steps = null,
    ): DeadLetters {
        $request = Fields::given([
            'topic' => $topic,
            'reason' => $reason,
            'ids' => $ids,
            'start' => Fields::unix($start),
            'step' => Duration::secondsOrNull($step),
            'steps' => $steps,
            'cursor' => $cursor,
        ]);
        $read = static fn (mixed $data): DeadLetters => DeadLetters::from(Data::of($data));

        return $this->send(new Call('/buried', self::object($request), $read, repeatable: true));
    }

    /** Says something about the dead letters of a reason, for all who look at them; null removes it. */
    public function note(string $reason, ?string $text = null): void
    {
        $request = Fields::given(['reason' => $reason, 'text' => $text]);
        $this->send(new Call('/note', $request, self::nothing(...), repeatable: true));
    }

    /**
     * Searches jobs for a part of their id, their body or the message of a failure, some thousand of them in a call.
     *
     * @param string|null $text a part of the body
     */
    public function find(
        ?string $id = null,
        ?string $text = null,
        ?string $topic = null,
        ?int $limit = null,
        ?string $cursor = null,
        ?string $message = null,
        ?string $tag = null,
        State|string|null $state = null,
        int|float|\DateTimeInterface|null $start = null,
        int|float|\DateTimeInterface|null $end = null,
        int|float|\DateTimeInterface|null $after = null,
        int|float|\DateTimeInterface|null $before = null,
        ?string $group = null,
    ): Findings {
        $request = Fields::given([
            'id' => $id,
            'text' => $text,
            'message' => $message,
            'topic' => $topic,
            'tag' => $tag,
            'group' => $group,
            'state' => Fields::value($state),
            ...Fields::range($start, $end, $after, $before),
            'limit' => $limit,
            'cursor' => $cursor,
        ]);
        $read = static fn (mixed $data): Findings => Findings::from(Data::of($data));

        return $this->send(new Call('/find', self::object($request), $read, repeatable: true));
    }

    /** Pauses the deliveries of a topic for `length`, or until they are resumed. */
    public function pause(string $topic, int|float|string|\DateInterval|null $length = null): void
    {
        $request = Fields::given(['topic' => $topic, 'seconds' => Duration::secondsOrNull($length)]);
        $this->send(new Call('/pause', $request, self::nothing(...), repeatable: true));
    }

    /** Resumes the deliveries of a topic. */
    public function resume(string $topic): void
    {
        $this->send(new Call('/resume', ['topic' => $topic], self::nothing(...), repeatable: true));
    }

    /**
     * Limits the deliveries of a topic. Null lifts a limit; one that is left out stays. Returns the limits in force.
     *
     * @param int|float|Unchanged|null $rate deliveries a second
     * @param int|Unchanged|null $burst how many at once after a pause
     * @param int|Unchanged|null $concurrency jobs reserved at once
     * @param int|float|string|\DateInterval|Unchanged|null $buriedRetain how long buried jobs are kept
     * @param string|Unchanged|null $buriedTo the topic to which each buried job is reported by a job
     * @param int|Unchanged|null $groupConcurrency jobs of one group reserved at once
     * @param bool|Unchanged|null $groupOrder whether the jobs of a group go in strict order, one at a time
     * @param int|Unchanged|null $maxJobs jobs that it may have; a push to a full topic throws TopicFull
     * @param 'drop_oldest'|Unchanged|null $whenFull ends an older job instead
     */
    public function limit(
        string $topic,
        int|float|Unchanged|null $rate = Unchanged::Unchanged,
        int|Unchanged|null $burst = Unchanged::Unchanged,
        int|Unchanged|null $concurrency = Unchanged::Unchanged,
        int|float|string|\DateInterval|Unchanged|null $buriedRetain = Unchanged::Unchanged,
        string|Unchanged|null $buriedTo = Unchanged::Unchanged,
        int|Unchanged|null $groupConcurrency = Unchanged::Unchanged,
        bool|Unchanged|null $groupOrder = Unchanged::Unchanged,
        int|Unchanged|null $maxJobs = Unchanged::Unchanged,
        string|Unchanged|null $whenFull = Unchanged::Unchanged,
    ): Limits {
        $limits = [
            'rate' => $rate,
            'burst' => $burst,
            'concurrency' => $concurrency,
            'group_concurrency' => $groupConcurrency,
            'group_order' => $groupOrder,
            'buried_retain' => $buriedRetain instanceof Unchanged ? $buriedRetain : Duration::secondsOrNull($buriedRetain),
            'buried_to' => $buriedTo,
            'max_jobs' => $maxJobs,
            'when_full' => $whenFull,
        ];
        $changes = array_filter($limits, static fn (mixed $limit): bool => !$limit instanceof Unchanged);
        $read = static fn (mixed $data): Limits => Limits::from(Data::of($data));

        return $this->send(new Call('/limit', ['topic' => $topic] + $changes, $read, repeatable: true));
    }

    /**
     * Deletes jobs of a topic without a trace: all, or those in one state ('ended' = kept results). Returns how many.
     *
     * @param 'delayed'|'ready'|'reserved'|'buried'|'ended'|State|null $state
     */
    public function purge(string $topic, State|string|null $state = null): int
    {
        $request = Fields::given(['topic' => $topic, 'state' => Fields::value($state)]);

        return $this->send(new Call('/purge', $request, self::count(...)));
    }

    /**
     * Topics with their exact counts.
     *
     * @param list<string> $names only these; [] = all
     * @param string|null $match only those with this in their name
     * @param 'buried'|'late'|'paused'|'limited'|'full'|null $only
     * @param 'topic'|'delayed'|'ready'|'reserved'|'buried'|'oldest'|null $sort by name, or the largest first
     * @param bool $dueSoon whether to count the jobs that fall due within 60, 300 and 3600 seconds
     * @param bool $rates whether to tell what happened a second in the last minute
     * @param bool $groups whether to name the ten groups of each with the most ready jobs
     *
     * @return list<TopicCounts>
     */
    public function topics(
        array $names = [],
        ?string $match = null,
        ?string $only = null,
        ?string $sort = null,
        bool $reverse = false,
        ?int $offset = null,
        ?int $limit = null,
        bool $dueSoon = false,
        bool $rates = false,
        bool $groups = false,
    ): array {
        $request = Fields::given([
            'topics' => array_values($names) ?: null,
            'match' => $match,
            'only' => $only,
            'sort' => $sort,
            'reverse' => $reverse ?: null,
            'offset' => $offset,
            'limit' => $limit,
            'due_soon' => $dueSoon ?: null,
            'rates' => $rates ?: null,
            'groups' => $groups ?: null,
        ]);
        $read = static fn (mixed $data): array => Data::each($data, TopicCounts::from(...));

        return $this->send(new Call('/topics', self::object($request), $read, repeatable: true));
    }

    /**
     * A request that may have no fields: [] would be sent as a JSON array.
     *
     * @param array<string, mixed> $fields
     *
     * @psalm-suppress LessSpecificReturnStatement, MoreSpecificReturnType a cast of an array makes a \stdClass
     */
    private static function object(array $fields): \stdClass
    {
        return (object) $fields;
    }
}
