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
use DelayQueue\Client\Internal\Ttr;
use DelayQueue\Client\Job as ReservedJob;
use DelayQueue\Client\NewJob;
use DelayQueue\Client\Worker\Turns;
use Illuminate\Broadcasting\BroadcastEvent;
use Illuminate\Contracts\Queue\ClearableQueue;
use Illuminate\Contracts\Queue\Queue as QueueContract;
use Illuminate\Events\CallQueuedListener;
use Illuminate\Mail\SendQueuedMailable;
use Illuminate\Notifications\SendQueuedNotifications;
use Illuminate\Queue\Attributes\Delay;
use Illuminate\Queue\Queue;
use Illuminate\Support\Carbon;

/** A queue connection of Laravel over the delay-queue server: a queue is a topic. */
class DelayQueue extends Queue implements QueueContract, ClearableQueue
{
    private const MAX_BATCH = 1000;

    /** Of payloads: a request has room for eight times as much, which their escapes and tags may need. */
    private const MAX_BATCH_BYTES = 1 << 20;

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
        return $this->enqueue($delay, $job, $data, $queue, $this->pushRaw(...));
    }

    /** Pushes jobs, each with its own delay, up to 1000 in a call. Throws the error of the first that is refused. */
    public function bulk($jobs, $data = '', $queue = null)
    {
        $batch = [];
        $isOpen = true;
        $collect = function ($payload, $queue, $options) use (&$batch, &$isOpen) {
            if (!$isOpen) { // it has waited for the commit of a transaction
                return $this->pushRaw($payload, $queue, $options);
            }
            $batch[] = $new = new NewJob(...$this->arguments($payload, $queue, $options));

            return $new->id;
        };
        try {
            foreach ($jobs as $job) {
                $this->enqueue($this->delayOf($job) ?? 0, $job, $data, $queue, $collect);
            }
        } finally {
            $isOpen = false;
        }
        foreach (self::requests($batch) as $jobs) {
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
        return $this->client->push(...$this->arguments($payload, $queue, $options));
    }

    public function pop($queue = null)
    {
        $topic = $this->topic($queue);
        $pop = fn (float $wait): ?ReservedJob => $this->client->pop($topic, wait: $wait);
        $job = $this->turns->ask($topic, $this->wait, $pop);

        return $job === null ? null : new DelayQueueJob($this->container, $this->client, $job, $this->connectionName);
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
        return parent::createPayloadArray($job, $queue, $data) + ['delay-queue' => is_object($job) ? $this->own($job) : []];
    }

    /**
     * What the class of a job says of it. Methods of a listener get the event, as those that Laravel asks.
     *
     * @return array<string, mixed>
     */
    private function own(object $job): array
    {
        $written = self::written($job);
        $event = $job instanceof CallQueuedListener ? array_values($job->data) : [];
        $warn = fn (string $message) => $this->container->make('log')->warning($message);
        $tags = method_exists($written, 'tags') ? $written->tags(...$event) : null; // such as order:1001, for cancel()
        $grouped = property_exists($job, 'messageGroup') ? $job : $written; // Laravel 12.27 copies it to a job of its own
        $group = $grouped->messageGroup ?? (method_exists($grouped, 'messageGroup') ? $grouped->messageGroup(...$event) : null);

        return Fields::given([
            'tags' => Tags::of($written::class, $tags, $warn) ?: null,
            'group' => Group::of($written::class, blank($group) ? null : $group), // as in Laravel's connection for SQS
            'ttr' => $written->ttr ?? null, // seconds
        ]);
    }

    /** What a user wrote: listeners, notifications, mailables and broadcast events are in jobs of Laravel's own. */
    private static function written(object $job): object
    {
        return match (true) {
            $job instanceof CallQueuedListener => (new \ReflectionClass($job->class))->newInstanceWithoutConstructor(), // as Laravel does
            $job instanceof SendQueuedNotifications => $job->notification,
            $job instanceof SendQueuedMailable => $job->mailable,
            $job instanceof BroadcastEvent => $job->event,
            default => $job,
        };
    }

    /** That of its property, or of its attribute, which Laravel 13 has. */
    private function delayOf(mixed $job): mixed
    {
        return is_object($job) && method_exists($this, 'getAttributeValue')
            ? $this->getAttributeValue($job, Delay::class, 'delay')
            : $job->delay ?? null;
    }

    /** @param callable(string, \UnitEnum|string|null, array<string, mixed>): string $send as pushRaw() */
    private function enqueue(mixed $delay, mixed $job, mixed $data, \UnitEnum|string|null $queue, callable $send): mixed
    {
        $delay = Duration::number($delay);

        return $this->enqueueUsing(
            $job,
            $this->createPayload($job, $this->topic($queue), $data, $delay ?: null), // Laravel 8 ignores the last one
            $queue,
            $delay ?: null,
            static fn ($payload, $queue) => $send($payload, $queue, Duration::argument($delay, Carbon::now())),
        );
    }

    /**
     * @param array<string, mixed> $options
     *
     * @return array<string, mixed> of Client::push()
     */
    private function arguments(string $payload, \UnitEnum|string|null $queue, array $options): array
    {
        $said = json_decode($payload, true);
        $default = ['topic' => $this->topic($queue), 'body' => $payload, 'ttr' => Ttr::of($this->ttr, $said['timeout'] ?? null)];

        return $options + ($said['delay-queue'] ?? []) + $default;
    }

    /**
     * @param list<NewJob> $jobs
     *
     * @return iterable<list<NewJob>> as many as a request may have
     */
    private static function requests(array $jobs): iterable
    {
        [$request, $bytes] = [[], 0];
        foreach ($jobs as $job) {
            $bytes += strlen($job->body);
            if ($request !== [] && ($bytes > self::MAX_BATCH_BYTES || count($request) === self::MAX_BATCH)) {
                yield $request;
                [$request, $bytes] = [[], strlen($job->body)];
            }
            $request[] = $job;
        }
        if ($request !== []) {
            yield $request;
        }
    }

    private function counts(\UnitEnum|string|null $queue): ?TopicCounts
    {
        return $this->client->topics([$this->topic($queue)])[0] ?? null;
    }

    private function topic(\UnitEnum|string|null $queue): string
    {
        $name = ($queue instanceof \UnitEnum ? $queue->value ?? $queue->name : $queue) ?: $this->default;

        return method_exists($this, 'resolveQueue') ? $this->resolveQueue($name) : $name; // Queue::forward() of Laravel 13
    }
}
