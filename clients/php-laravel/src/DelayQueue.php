<?php

declare(strict_types=1);

namespace DelayQueue\Laravel;

use DelayQueue\Client\Answer\TopicCounts;
use DelayQueue\Client\Client;
use DelayQueue\Client\Exception\QueueException;
use DelayQueue\Client\Internal\Duration;
use DelayQueue\Client\Internal\Fields;
use DelayQueue\Client\Internal\Group;
use DelayQueue\Client\Internal\Tags;
use DelayQueue\Client\NewJob;
use DelayQueue\Client\Worker\Turns;
use Illuminate\Contracts\Queue\ClearableQueue;
use Illuminate\Contracts\Queue\Queue as QueueContract;
use Illuminate\Queue\Queue;

/** A queue connection of Laravel over the delay-queue server: a queue is a topic. */
class DelayQueue extends Queue implements QueueContract, ClearableQueue
{
    private const MAX_BATCH = 1000;

    /** @var list<NewJob>|null the jobs of a bulk(), which are sent together */
    private ?array $batch = null;

    private readonly Turns $turns;

    /**
     * @param string $default the topic of jobs that name none
     * @param int $ttr seconds that a worker may take for a job
     * @param int|float $wait seconds that a worker waits for a job, once all its queues are empty
     */
    public function __construct(
        private readonly Client $client,
        private readonly string $default,
        private readonly int $ttr,
        private readonly int|float $wait,
        bool $afterCommit,
    ) {
        $this->dispatchAfterCommit = $afterCommit;
        $this->turns = new Turns();
    }

    /** The client, for what a connection of Laravel does not know. */
    public function client(): Client
    {
        return $this->client;
    }

    public function push($job, $data = '', $queue = null)
    {
        return $this->later(0, $job, $data, $queue);
    }

    public function later($delay, $job, $data = '', $queue = null)
    {
        $options = ['delay' => max(0, $this->secondsUntil(Duration::number($delay)))]; // a time that has passed is now

        return $this->enqueueUsing(
            $job,
            $this->createPayload($job, $this->topic($queue), $data, $delay ?: null), // Laravel 8 ignores the last one
            $queue,
            $delay ?: null,
            fn ($payload, $queue) => $this->pushRaw($payload, $queue, $options),
        );
    }

    /** Pushes jobs, each with its own delay, up to 1000 in a call. Throws the error of the first that is refused. */
    public function bulk($jobs, $data = '', $queue = null)
    {
        $this->batch = [];
        try {
            foreach ($jobs as $job) {
                $this->later($job->delay ?? 0, $job, $data, $queue);
            }
            $batch = $this->batch;
        } finally {
            $this->batch = null; // what waits for the commit of a transaction is pushed by itself
        }
        foreach (array_chunk($batch, self::MAX_BATCH) as $jobs) {
            foreach ($this->client->pushMany($jobs) as $outcome) {
                if (!$outcome->succeeded()) {
                    throw QueueException::of($outcome->code, $outcome->message, 0.0);
                }
            }
        }
    }

    /** @param array<string, mixed> $options arguments of Client::push(), such as an id of your own */
    public function pushRaw($payload, $queue = null, array $options = [])
    {
        $own = json_decode($payload, true)['delay-queue'] ?? [];
        $job = $options + $own + ['topic' => $this->topic($queue), 'body' => $payload, 'ttr' => $this->ttr];
        if ($this->batch === null) {
            return $this->client->push(...$job);
        }
        $this->batch[] = $new = new NewJob(...$job);

        return $new->id;
    }

    public function pop($queue = null)
    {
        $topic = $this->topic($queue);
        $job = $this->client->pop($topic, wait: $this->turns->waitSeconds($topic, $this->wait));
        if ($job === null) {
            return null;
        }
        $this->turns->begin();

        return new DelayQueueJob($this->container, $this->client, $job, $this->connectionName);
    }

    /**
     * Tells in which order a worker will ask for jobs.
     *
     * @param list<string> $queues
     */
    public function expect(array $queues): void
    {
        $this->turns->expect(array_map($this->topic(...), $queues));
    }

    /** Ends all jobs of a tag, wherever they are. Returns how many. */
    public function cancel(string $tag): int
    {
        return $this->client->cancel($tag);
    }

    public function clear($queue)
    {
        return $this->client->purge($this->topic($queue));
    }

    public function size($queue = null)
    {
        $counts = $this->counts($queue);

        return $counts === null ? 0 : $counts->ready + $counts->delayed + $counts->reserved;
    }

    public function pendingSize($queue = null)
    {
        return $this->counts($queue)?->ready ?? 0;
    }

    public function delayedSize($queue = null)
    {
        return $this->counts($queue)?->delayed ?? 0;
    }

    public function reservedSize($queue = null)
    {
        return $this->counts($queue)?->reserved ?? 0;
    }

    public function creationTimeOfOldestPendingJob($queue = null)
    {
        $age = $this->counts($queue)?->oldestReadyAge;

        return $age === null ? null : (int) (time() - $age);
    }

    /** With the job's tags, group and ttr: queue:retry has nothing but the payload to push it again. */
    protected function createPayloadArray($job, $queue, $data = '')
    {
        $own = [];
        if (is_object($job) && method_exists($job, 'tags')) {
            $warn = fn (string $message) => $this->container->make('log')->warning($message);
            $own['tags'] = Tags::of($job::class, $job->tags(), $warn); // such as order:1001, for cancel()
        }
        if (is_object($job)) { // onGroup() sets the property; Laravel's connection for SQS asks in this order, too
            $group = $job->messageGroup ?? (method_exists($job, 'messageGroup') ? $job->messageGroup() : null);
            $own['group'] = Group::of($job::class, $group);
        }
        if (isset($job->ttr)) {
            $own['ttr'] = $job->ttr; // seconds; for a job whose $timeout is longer than others'
        }

        return parent::createPayloadArray($job, $queue, $data) + ['delay-queue' => Fields::given($own)];
    }

    private function counts(?string $queue): ?TopicCounts
    {
        return $this->client->topics([$this->topic($queue)])[0] ?? null;
    }

    private function topic(?string $queue): string
    {
        return $queue ?: $this->default;
    }
}
