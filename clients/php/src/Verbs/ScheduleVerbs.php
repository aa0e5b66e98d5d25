<?php

declare(strict_types=1);

namespace DelayQueue\Client\Verbs;

use DelayQueue\Client\Answer\Occurrence;
use DelayQueue\Client\Answer\Schedule;
use DelayQueue\Client\Answer\SchedulePage;
use DelayQueue\Client\Call;
use DelayQueue\Client\IfExists;
use DelayQueue\Client\Internal\Data;
use DelayQueue\Client\Internal\Duration;
use DelayQueue\Client\Internal\Fields;

/** The endpoints from /schedule to /run-schedule. Those that take a name throw NoSuchJob if no schedule has it. */
trait ScheduleVerbs
{
    /**
     * Pushes jobs at the times of `cron`, or once every `every`. Returns the next time in unix seconds; null = never.
     *
     * Throws JobExists if the name is taken, unless `ifExists` says otherwise: 'change' changes only what is given, and
     * throws NoSuchJob if there is none.
     *
     * @param string|null $topic required unless the schedule is changed
     * @param string|array<mixed>|object|null $body text, or what is sent as JSON
     * @param string|null $cron minute, hour, day of the month, month, weekday; a field for seconds may come first
     * @param int|float|string|\DateInterval|null $every the interval, counted from 1970
     * @param string|null $tz the time zone of `cron`; null = UTC
     * @param int|float|string|\DateInterval|null $ttr of the jobs
     * @param 'skip'|'once'|'all'|null $catchUp what to do about times that no server could serve
     * @param string|array{url: string, method?: string, headers?: array<string, string>,
     *     timeout?: int|float|string|\DateInterval, expect?: string, give_up?: bool}|null $call made by the server, as in push()
     * @param bool|null $paused whether to keep the schedule and push nothing
     * @param 'replace'|'keep'|'fail'|'change'|IfExists|null $ifExists
     * @param string|null $group of the jobs
     */
    public function schedule(
        string $name,
        ?string $topic = null,
        string|array|object|null $body = null,
        ?string $cron = null,
        int|float|string|\DateInterval|null $every = null,
        ?string $tz = null,
        int|float|string|\DateInterval|null $ttr = null,
        ?string $catchUp = null,
        ?bool $paused = null,
        #[\SensitiveParameter] string|array|null $call = null,
        IfExists|string|null $ifExists = null,
        ?string $group = null,
    ): ?float {
        $request = Fields::given([
            'name' => $name,
            'topic' => $topic,
            'body' => $body === null ? null : Fields::body($body),
            'cron' => $cron,
            'every' => Duration::secondsOrNull($every),
            'tz' => $tz,
            'ttr' => Duration::secondsOrNull($ttr),
            'catch_up' => $catchUp,
            'paused' => $paused,
            'call' => Fields::call($call),
            'group' => $group,
            'if_exists' => Fields::value($ifExists),
        ]);
        $read = static fn (mixed $data): ?float => Data::of($data)->floatOrNull('next');

        return $this->send(new Call('/schedule', $request, $read, repeatable: true));
    }

    /** Removes a schedule. The jobs that it has pushed stay. */
    public function unschedule(string $name): void
    {
        $this->send(
            new Call('/unschedule', ['name' => $name], self::nothing(...), repeatable: true, goneIsDone: true),
        );
    }

    /**
     * The schedules of a topic, or of all topics, by name.
     *
     * @return list<Schedule>
     */
    public function schedules(?string $topic = null): array
    {
        $read = static fn (mixed $data): array => Data::each($data, Schedule::from(...));

        return $this->send(
            new Call('/schedules', self::object(Fields::given(['topic' => $topic])), $read, repeatable: true),
        );
    }

    /**
     * A page of the schedules of a topic, or of all topics, by name.
     *
     * @param string|null $cursor of the page before, for which the topic was the same
     */
    public function schedulesPage(?string $topic = null, int $limit = 1000, ?string $cursor = null): SchedulePage
    {
        $request = Fields::given(['topic' => $topic, 'limit' => $limit, 'cursor' => $cursor]);
        $read = static fn (mixed $data): SchedulePage => SchedulePage::from(Data::of($data));

        return $this->send(new Call('/schedules', $request, $read, repeatable: true));
    }

    /**
     * The next ten times of a schedule, which need not exist.
     *
     * @return list<Occurrence>
     */
    public function previewSchedule(
        ?string $cron = null,
        int|float|string|\DateInterval|null $every = null,
        ?string $tz = null,
    ): array {
        $request = Fields::given(['cron' => $cron, 'every' => Duration::secondsOrNull($every), 'tz' => $tz]);
        $read = static fn (mixed $data): array => Data::each($data, Occurrence::from(...));

        return $this->send(new Call('/preview-schedule', self::object($request), $read, repeatable: true));
    }

    /** Pushes a job of a schedule now. Returns its id. */
    public function runSchedule(string $name): string
    {
        $read = static fn (mixed $data): string => Data::of($data)->string('id');

        return $this->send(new Call('/run-schedule', ['name' => $name], $read));
    }
}
