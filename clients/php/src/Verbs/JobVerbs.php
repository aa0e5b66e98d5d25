<?php

declare(strict_types=1);

namespace DelayQueue\Client\Verbs;

use DelayQueue\Client\Answer\JobDetails;
use DelayQueue\Client\Answer\Outcome;
use DelayQueue\Client\Call;
use DelayQueue\Client\Exception\Interrupted;
use DelayQueue\Client\IfExists;
use DelayQueue\Client\Internal\Data;
use DelayQueue\Client\Internal\Duration;
use DelayQueue\Client\Internal\Fields;
use DelayQueue\Client\Internal\UnexpectedAnswer;
use DelayQueue\Client\Job;
use DelayQueue\Client\NewJob;
use DelayQueue\Client\State;

/** The endpoints from /push to /reschedule. Methods that take a Job act on its reservation; with an id, on the job. */
trait JobVerbs
{
    /**
     * @internal
     *
     * @template T
     *
     * @param Call<T> $call
     *
     * @return T
     */
    abstract public function send(Call $call): mixed;

    /**
     * Adds a job, due after `delay` or at `due`. Returns its id.
     *
     * Repeated if the connection breaks. A repetition adds nothing to a job that waits or that a worker has, if `id` is
     * not given; with an `id` it replaces the job, unless `ifExists: 'keep'`. A job that has ended meanwhile is added
     * once more, unless `retain` keeps its id known. With `ifExists: 'fail'` it is not repeated, and throws JobExists if
     * the id exists; nor is one with the id "*", which the server makes.
     *
     * @param string|array<mixed>|object $body text, or what is sent as JSON
     * @param string|null $id names the job among those of all topics; null = a new one
     * @param int|float|\DateTimeInterface|null $due instead of `delay`
     * @param int|float|string|\DateInterval $ttr how long a worker may take
     * @param list<string> $tags what cancel(), listJobs(), kickTag() and rescheduleTag() ask for
     * @param string|array<mixed>|null $retry delays after failures, such as ["15s", "1m"], then it is buried; or a
     *     preset ("alipay", "wechat"), or a formula: ["max" => 5, "base" => "2s", "factor" => 3, "cap" => "1m"]
     * @param 'replace'|'keep'|'fail'|IfExists|null $ifExists what to do if the id exists; null = replace
     * @param int|float|string|\DateInterval|null $retain how long its record is kept after its end
     * @param int|float|string|\DateInterval|null $expire how long after it was due anybody needs it
     * @param int|null $priority the smaller goes first; null = 1024
     * @param string|array{url: string, method?: 'POST'|'PUT'|'PATCH'|'DELETE'|'GET', headers?: array<string, string>,
     *     timeout?: int|float|string|\DateInterval, expect?: string, give_up?: bool}|null $call a URL, or more, that the
     *     server calls when the job is due; no worker gets the job
     * @param string|null $traceparent W3C trace context, which pop() returns
     * @param string|null $idempotencyKey a push that repeats another one, with the same id and key, changes nothing
     * @param string|null $group the group that it belongs to, such as a customer
     * @param int|float|string|\DateInterval|null $maxWait how long pushes that replace each other may put it off
     */
    public function push(
        string $topic,
        string|array|object $body = '',
        ?string $id = null,
        int|float|string|\DateInterval $delay = 0,
        int|float|\DateTimeInterface|null $due = null,
        int|float|string|\DateInterval $ttr = 60,
        array $tags = [],
        string|array|null $retry = null,
        IfExists|string|null $ifExists = null,
        int|float|string|\DateInterval|null $retain = null,
        int|float|string|\DateInterval|null $expire = null,
        ?int $priority = null,
        #[\SensitiveParameter] string|array|null $call = null,
        ?string $traceparent = null,
        ?string $idempotencyKey = null,
        ?string $group = null,
        int|float|string|\DateInterval|null $maxWait = null,
    ): string {
        if ($id === null && $maxWait === null) {
            // nobody else has an id that is made: what exists with it is this job, and a worker may have it already
            $ifExists ??= IfExists::Keep;
        }
        $job = new NewJob(
            topic: $topic,
            body: $body,
            id: $id,
            delay: $delay,
            due: $due,
            ttr: $ttr,
            tags: $tags,
            retry: $retry,
            ifExists: $ifExists,
            retain: $retain,
            expire: $expire,
            priority: $priority,
            call: $call,
            traceparent: $traceparent,
            idempotencyKey: $idempotencyKey,
            group: $group,
            maxWait: $maxWait,
        );
        $read = static fn (mixed $data): string => $data === null ? $job->id : Data::of($data)->string('id');

        return $this->send(self::pushing($job->toRequest(), $read, $job->isRepeatable()));
    }

    /**
     * Adds 1 to 1000 jobs. Returns an outcome for each; one that is refused does not affect the others.
     *
     * Repeated if the connection breaks, unless one of them has `ifExists: 'fail'` or the id "*". A repetition replaces
     * jobs that workers already have, so that they run again, except those with `ifExists: 'keep'`.
     *
     * @param iterable<NewJob> $jobs
     *
     * @return list<Outcome>
     */
    public function pushMany(iterable $jobs): array
    {
        $requests = [];
        $repeatable = true;
        foreach ($jobs as $job) {
            $requests[] = $job->toRequest();
            $repeatable = $repeatable && $job->isRepeatable();
        }

        return $this->send(self::pushing($requests, self::outcomes(count($requests)), $repeatable));
    }

    /**
     * Reserves a job, and waits for one; earlier topics come first. Returns null if none came.
     *
     * @param string|list<string> $topics
     * @param int|float|string|\DateInterval|null $wait at most; null = as the server's setting says, 178 s by default
     * @param (\Closure(): bool)|null $stop asked while it waits, once a second and after a signal: true ends the wait
     * @param string|array{name: string, version?: string, host?: string, pid?: int, concurrency?: int}|null $worker who
     *     polls, or its name alone: workers() shows it, and the job names it
     */
    public function pop(
        string|array $topics,
        int|float|string|\DateInterval|null $wait = null,
        ?\Closure $stop = null,
        string|array|null $worker = null,
    ): ?Job {
        $read = static fn (mixed $data): ?Job => $data === null ? null : Job::from(Data::of($data));
        try {
            return $this->send(self::popCall($topics, $wait, $stop, [], $worker, $read));
        } catch (Interrupted) {
            return null;
        }
    }

    /**
     * Reserves up to `count` jobs, as soon as there is at least one. Returns [] if none came.
     *
     * @param string|list<string> $topics
     * @param int|float|string|\DateInterval|null $wait at most; null = as the server's setting says, 178 s by default
     * @param (\Closure(): bool)|null $stop asked while it waits, once a second and after a signal: true ends the wait
     * @param string|array{name: string, version?: string, host?: string, pid?: int, concurrency?: int}|null $worker who
     *     polls, or its name alone: workers() shows it, and the job names it
     *
     * @return list<Job>
     */
    public function popMany(
        string|array $topics,
        int $count,
        int|float|string|\DateInterval|null $wait = null,
        ?\Closure $stop = null,
        string|array|null $worker = null,
    ): array {
        $read = static fn (mixed $data): array => Data::each($data, Job::from(...));
        try {
            return $this->send(self::popCall($topics, $wait, $stop, ['count' => $count], $worker, $read));
        } catch (Interrupted) {
            return [];
        }
    }

    /** Ends a job whose work is done. Throws StaleReceipt if its TTR has passed and another worker may have it. */
    public function finish(Job|string $job, string $message = ''): void
    {
        $this->end('/finish', $job, $message);
    }

    /**
     * Ends up to 1000 jobs whose work is done. Returns an outcome for each.
     *
     * @param iterable<Job|string> $jobs
     *
     * @return list<Outcome>
     */
    public function finishMany(iterable $jobs, string $message = ''): array
    {
        return $this->endMany('/finish', $jobs, $message);
    }

    /** Ends a job that is no longer wanted, in any state. */
    public function delete(Job|string $job, string $message = ''): void
    {
        $this->end('/delete', $job, $message);
    }

    /**
     * Ends up to 1000 jobs that are no longer wanted, in any state. Returns an outcome for each.
     *
     * @param iterable<Job|string> $jobs
     *
     * @return list<Outcome>
     */
    public function deleteMany(iterable $jobs, string $message = ''): array
    {
        return $this->endMany('/delete', $jobs, $message);
    }

    /**
     * All about a job, with `options` also its retry, retain and expires; null if no job has the id.
     *
     * With `wait`, returns when the job has ended or is buried, or after that time.
     */
    public function get(
        string $id,
        bool $options = false,
        int|float|string|\DateInterval|null $wait = null,
    ): ?JobDetails {
        $seconds = Duration::secondsOrNull($wait);
        $read = static fn (mixed $data): ?JobDetails => $data === null ? null : JobDetails::from(Data::of($data));
        $request = Fields::given(['id' => $id, 'options' => $options ?: null, 'timeout' => $seconds]);

        return $this->send(new Call('/get', $request, $read, repeatable: true, waitSeconds: (float) $seconds));
    }

    /**
     * All about up to 1000 jobs, null for each that does not exist. Asks again if one answer has no room for all.
     *
     * @param list<string> $ids
     *
     * @return list<JobDetails|null>
     */
    public function getMany(array $ids, bool $options = false): array
    {
        $known = [];
        $wanted = array_values(array_unique($ids));
        do {
            $request = Fields::given(['ids' => $wanted, 'options' => $options ?: null]);
            $known += $this->send(new Call('/get', $request, self::eachOf($wanted), repeatable: true));
            $wanted = array_values(array_filter($wanted, static fn (string $id): bool => !array_key_exists($id, $known)));
        } while ($wanted !== []);

        return array_map(static fn (string $id): ?JobDetails => $known[$id], $ids);
    }

    /**
     * Gives a reserved job back: it becomes due again after `delay`, or else as its retry schedule says.
     *
     * Returns when it is due, in unix seconds; null if it was buried, or has expired.
     *
     * @param int|float|string|\DateInterval|null $fallback the delay for a job without a schedule
     * @param string|array<mixed>|null $retry the schedule for a job without its own; at its end the job is buried
     */
    public function release(
        Job|string $job,
        int|float|string|\DateInterval|null $delay = null,
        int|float|string|\DateInterval|null $fallback = null,
        string|array|null $retry = null,
        string $message = '',
    ): ?float {
        $request = Fields::held($job) + Fields::given([
            'delay' => Duration::delayOrNull($delay),
            'fallback' => Duration::secondsOrNull($fallback),
            'retry' => Fields::retry($retry),
            'message' => Fields::message($message),
        ]);

        return $this->send(self::givingBack('/release', $request, self::due(...)));
    }

    /**
     * Extends a reservation: its TTR, or `ttr`, starts over. Returns the new deadline in unix seconds.
     *
     * @param int|float|null $progress how far the job is, 0 to 100 percent, for get() and the page; null = as before
     * @param string $message what its worker is at
     */
    public function touch(
        Job|string $job,
        int|float|string|\DateInterval|null $ttr = null,
        int|float|null $progress = null,
        string $message = '',
    ): float {
        $request = Fields::held($job) + Fields::given([
            'ttr' => Duration::secondsOrNull($ttr),
            'progress' => $progress,
            'message' => Fields::message($message),
        ]);
        $read = static fn (mixed $data): float => Data::of($data)->float('deadline');

        return $this->send(new Call('/touch', $request, $read, repeatable: true));
    }

    /** Sets a reserved job aside until somebody looks at it. */
    public function bury(Job|string $job, string $message = ''): void
    {
        $request = Fields::held($job) + Fields::given(['message' => Fields::message($message)]);
        $this->send(self::givingBack('/bury', $request, self::nothing(...)));
    }

    /**
     * Makes a buried or delayed job ready now.
     *
     * @param string|array<mixed>|object|null $body replaces its own
     */
    public function kick(string $id, string|array|object|null $body = null): void
    {
        $request = Fields::given(['id' => $id, 'body' => $body === null ? null : Fields::body($body)]);
        $this->send(new Call('/kick', $request, self::nothing(...)));
    }

    /**
     * Makes up to 1000 buried or delayed jobs ready now. Returns an outcome for each.
     *
     * @param list<string> $ids
     *
     * @return list<Outcome>
     */
    public function kickMany(array $ids): array
    {
        return $this->send(new Call('/kick', ['ids' => array_values($ids)], self::results(...)));
    }

    /**
     * Makes the first `count` buried jobs of a topic ready now, or with `state: 'delayed'` its delayed ones.
     *
     * Returns how many.
     *
     * @param 'buried'|'delayed'|State|null $state
     */
    public function kickTopic(string $topic, int $count = 1, State|string|null $state = null): int
    {
        $request = Fields::given(['topic' => $topic, 'count' => $count, 'state' => Fields::value($state)]);

        return $this->send(new Call('/kick', $request, self::count(...)));
    }

    /**
     * Makes a tag's buried jobs ready now, or with `state: 'delayed'` its delayed ones; in one topic or in all.
     *
     * Returns how many.
     *
     * @param 'buried'|'delayed'|State|null $state
     */
    public function kickTag(string $tag, ?string $topic = null, State|string|null $state = null): int
    {
        $request = Fields::given(['tag' => $tag, 'topic' => $topic, 'state' => Fields::value($state)]);

        return $this->send(new Call('/kick', $request, self::count(...)));
    }

    /**
     * Gives a job that is not reserved a new due time, a new priority, or both. Returns when it is due, in unix seconds.
     *
     * @param int|float|string|\DateInterval|null $by moves its own due time, to an earlier one if it is negative
     */
    public function reschedule(
        string $id,
        int|float|string|\DateInterval|null $delay = null,
        int|float|\DateTimeInterface|null $due = null,
        int|float|string|\DateInterval|null $by = null,
        ?int $priority = null,
    ): float {
        $read = static fn (mixed $data): float => Data::of($data)->float('due');

        return $this->send(self::rescheduling(['id' => $id], $delay, $due, $by, $priority, $read));
    }

    /**
     * Gives up to 1000 jobs that are not reserved a new due time, a new priority, or both. Returns an outcome for each.
     *
     * @param list<string> $ids
     * @param int|float|string|\DateInterval|null $by moves each job's own due time, to an earlier one if it is negative
     *
     * @return list<Outcome>
     */
    public function rescheduleMany(
        array $ids,
        int|float|string|\DateInterval|null $delay = null,
        int|float|\DateTimeInterface|null $due = null,
        int|float|string|\DateInterval|null $by = null,
        ?int $priority = null,
    ): array {
        return $this->send(self::rescheduling(['ids' => array_values($ids)], $delay, $due, $by, $priority, self::results(...)));
    }

    /**
     * Gives a tag's jobs that are not reserved a new due time, a new priority, or both; in one topic or in all.
     *
     * Returns how many were changed.
     *
     * @param int|float|string|\DateInterval|null $by moves each job's own due time, to an earlier one if it is negative
     */
    public function rescheduleTag(
        string $tag,
        ?string $topic = null,
        int|float|string|\DateInterval|null $delay = null,
        int|float|\DateTimeInterface|null $due = null,
        int|float|string|\DateInterval|null $by = null,
        ?int $priority = null,
    ): int {
        $which = Fields::given(['tag' => $tag, 'topic' => $topic]);

        return $this->send(self::rescheduling($which, $delay, $due, $by, $priority, self::count(...)));
    }

    /**
     * @template T
     *
     * @param array<mixed> $request
     * @param \Closure(mixed): T $read
     *
     * @return Call<T>
     */
    private static function pushing(array $request, \Closure $read, bool $repeatable): Call
    {
        return new Call(
            '/push',
            $request,
            $read,
            repeatable: $repeatable,
            timeoutSeconds: Call::PUSH_TIMEOUT_SECONDS,
        );
    }

    /**
     * Without a receipt, a second call could end the next reservation.
     *
     * @template T
     *
     * @param array<string, mixed> $request
     * @param \Closure(mixed): T $read
     *
     * @return Call<T>
     */
    private static function givingBack(string $path, array $request, \Closure $read): Call
    {
        return new Call($path, $request, $read, repeatable: isset($request['receipt']), endsReceipt: true);
    }

    private function end(string $path, Job|string $job, string $message): void
    {
        $request = Fields::held($job) + Fields::given(['message' => Fields::message($message)]);
        $this->send(new Call($path, $request, self::nothing(...), repeatable: true, goneIsDone: true));
    }

    /**
     * @param iterable<Job|string> $jobs
     *
     * @return list<Outcome>
     */
    private function endMany(string $path, iterable $jobs, string $message): array
    {
        $held = [];
        foreach ($jobs as $job) {
            $held[] = Fields::held($job);
        }
        $receipts = array_map(static fn (array $each): string => $each['receipt'] ?? '', $held);
        $request = Fields::given([
            'ids' => array_column($held, 'id'),
            'receipts' => array_filter($receipts) === [] ? null : $receipts,
            'message' => Fields::message($message),
        ]);

        return $this->send(
            new Call($path, $request, self::outcomes(count($held)), repeatable: true, goneIsDone: true),
        );
    }

    /**
     * @template T
     *
     * @param string|list<string> $topics
     * @param (\Closure(): bool)|null $stop
     * @param array<string, mixed> $fields
     * @param string|array<string, mixed>|null $worker
     * @param \Closure(mixed): T $read
     *
     * @return Call<T>
     */
    private static function popCall(
        string|array $topics,
        int|float|string|\DateInterval|null $wait,
        ?\Closure $stop,
        array $fields,
        string|array|null $worker,
        \Closure $read,
    ): Call {
        $seconds = Duration::secondsOrNull($wait);
        $request = ['topic' => implode(',', (array) $topics)] + $fields + Fields::given([
            'timeout' => $seconds,
            'worker' => is_string($worker) ? ['name' => $worker] : $worker,
        ]);

        return new Call(
            '/pop',
            $request,
            $read,
            waitSeconds: $seconds === null ? null : (float) $seconds,
            polls: true,
            stop: $stop,
        );
    }

    /**
     * @template T
     *
     * @param array<string, mixed> $which
     * @param \Closure(mixed): T $read
     *
     * @return Call<T>
     */
    private static function rescheduling(
        array $which,
        int|float|string|\DateInterval|null $delay,
        int|float|\DateTimeInterface|null $due,
        int|float|string|\DateInterval|null $by,
        ?int $priority,
        \Closure $read,
    ): Call {
        $request = $which + Fields::given([
            'delay' => Duration::delayOrNull($delay),
            'due' => Fields::unix($due),
            'by' => $by === null ? null : Duration::distance($by),
            'priority' => $priority,
        ]);

        // the same delay or distance, counted from another moment, is another due time
        return new Call('/reschedule', $request, $read, repeatable: $delay === null && $by === null);
    }

    /**
     * Reads the jobs of an answer, by id. Those that it had no room for are left out.
     *
     * @param list<string> $ids
     *
     * @return \Closure(mixed): array<JobDetails|null>
     */
    private static function eachOf(array $ids): \Closure
    {
        return static function (mixed $data) use ($ids): array {
            if (!is_array($data) || count($data) !== count($ids)) {
                throw new UnexpectedAnswer('another number of jobs was expected');
            }
            $known = [];
            foreach (array_combine($ids, $data) as $id => $job) {
                if (!is_array($job)) {
                    $known[$id] = null;
                } elseif (!isset($job['code'])) {
                    $known[$id] = JobDetails::from(Data::of($job));
                }
            }

            return $known === [] ? throw new UnexpectedAnswer('no job had room in the answer') : $known;
        };
    }

    /** @return \Closure(mixed): list<Outcome> */
    private static function outcomes(int $count): \Closure
    {
        return static function (mixed $data) use ($count): array {
            $outcomes = Data::each($data, Outcome::from(...));

            return count($outcomes) === $count ? $outcomes : throw new UnexpectedAnswer("$count outcomes were expected");
        };
    }

    /** @return list<Outcome> */
    private static function results(mixed $data): array
    {
        return Data::of($data)->list('results', Outcome::from(...));
    }

    private static function count(mixed $data): int
    {
        return Data::of($data)->int('count');
    }

    private static function due(mixed $data): ?float
    {
        return Data::of($data)->floatOrNull('due');
    }

    private static function nothing(): void
    {
    }
}
