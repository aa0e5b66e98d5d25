<?php

declare(strict_types=1);

namespace DelayQueue\Hyperf;

use DelayQueue\Client\Client;
use DelayQueue\Client\Exception\DelayQueueException;
use DelayQueue\Client\Exception\NoSuchJob;
use DelayQueue\Client\Exception\StaleReceipt;
use DelayQueue\Client\Internal\Group;
use DelayQueue\Client\Internal\Settings;
use DelayQueue\Client\Internal\Tags;
use DelayQueue\Client\Job;
use DelayQueue\Client\State;
use Hyperf\AsyncQueue\Driver\Driver;
use Hyperf\AsyncQueue\Event\AfterHandle;
use Hyperf\AsyncQueue\Event\BeforeHandle;
use Hyperf\AsyncQueue\Event\FailedHandle;
use Hyperf\AsyncQueue\Event\RetryHandle;
use Hyperf\AsyncQueue\JobInterface;
use Hyperf\AsyncQueue\JobMessage;
use Hyperf\AsyncQueue\MessageInterface;
use Hyperf\AsyncQueue\Result;
use Hyperf\Contract\StdoutLoggerInterface;
use Psr\Container\ContainerInterface;

/** A driver of hyperf/async-queue over the delay-queue server. Its channel is a topic. */
class DelayQueueDriver extends Driver
{
    private const RETRIES = 4; // within 8.5 s, the time of a restart or a failover

    private const BASE64 = 'base64,'; // before a message that is not UTF-8

    private const KICKED_TOGETHER = 1000;

    private const LONG_POLL_SECONDS = 30; // for the timeout 0, which waits for ever in Redis

    private const AWAY_SECONDS = 1; // between polls while the server is away: consume() asks again at once

    private const TOUCH_AFTER_NS = 1_000_000_000; // that a job waited for a free coroutine, which is no time of its handler's

    private readonly string $topic;

    private readonly int|float $waitSeconds;

    private readonly int|float $ttrSeconds;

    /** @var non-empty-list<int|float> of each attempt; the last one of all that follow */
    private readonly array $retrySeconds;

    private readonly Client $client; // of all coroutines: each call takes a connection of its own

    /** @param array<string, mixed> $config of the pool, in config/autoload/async_queue.php */
    public function __construct(ContainerInterface $container, array $config)
    {
        parent::__construct($container, $config);
        $config += ['channel' => 'queue', 'timeout' => 5, 'handle_timeout' => 10];
        $this->topic = Settings::topic($config, 'channel');
        $this->waitSeconds = Settings::seconds($config, 'timeout') ?: self::LONG_POLL_SECONDS;
        $this->ttrSeconds = Settings::seconds($config, 'handle_timeout');
        $this->retrySeconds = array_map(
            static fn (mixed $seconds): int|float => Settings::seconds(['retry_seconds' => $seconds], 'retry_seconds'),
            array_values((array) ($config['retry_seconds'] ?? 10)),
        ) ?: [10];
        $this->client = new Client($config['url'] ?? null, $config['token'] ?? null);
    }

    /**
     * A job may have methods: tags(), such as ["order:1001"], by which cancel() of a client finds it, and group(), such as
     * "customer-7".
     */
    public function push(JobInterface $job, int $delay = 0): bool
    {
        $message = $this->packer->pack(new JobMessage($job));
        $tags = $delay > 0 ? [self::tagOf($message)] : []; // for delete()
        if (method_exists($job, 'tags')) {
            $warn = fn (string $said) => $this->container->get(StdoutLoggerInterface::class)->warning($said);
            $tags = Tags::of($job::class, $job->tags(), $warn, $tags);
        }
        $body = preg_match('//u', $message) === 1 ? $message : self::BASE64 . base64_encode($message);
        $group = method_exists($job, 'group') ? Group::of($job::class, $job->group()) : null;
        $this->client->push($this->topic, $body, delay: max(0, $delay), ttr: $this->ttrSeconds, tags: $tags, group: $group);

        return true;
    }

    /** Ends the delayed jobs that are equal to this one. */
    public function delete(JobInterface $job): bool
    {
        $tag = self::tagOf($this->packer->pack(new JobMessage($job)));

        return $this->client->cancel($tag, $this->topic) > 0;
    }

    /** @return array{Job, MessageInterface}|array{false, null} */
    public function pop(): array
    {
        try {
            $job = $this->client->pop($this->topic, wait: $this->waitSeconds);
        } catch (DelayQueueException $error) {
            sleep(self::AWAY_SECONDS);

            throw $error;
        }
        if ($job === null) {
            return [false, null];
        }
        $packed = $job->body;
        if (str_starts_with($packed, self::BASE64)) {
            $packed = (string) base64_decode(substr($packed, strlen(self::BASE64)));
        }
        try {
            $message = $this->packer->unpack($packed);
        } catch (\Throwable $error) {
            $message = $error->getMessage();
        }
        if (!$message instanceof MessageInterface) { // the next attempt would read the same
            $this->bury($job, 'no message of async-queue' . (is_string($message) ? ": $message" : ''));

            return [false, null];
        }
        for ($attempt = 1; $attempt < $job->attempt; ++$attempt) {
            $message->attempts(); // counts one that is over
        }

        return [$job, $message];
    }

    public function ack(mixed $data): bool
    {
        return $this->end(static fn (Client $client) => $client->finish($data));
    }

    public function fail(mixed $data): bool
    {
        return $this->bury($data, '');
    }

    /** Makes the dead letters ready again. Jobs whose time ran out need no help: the server delivers them again. */
    public function reload(?string $queue = null): int
    {
        $reloaded = 0;
        while ($queue !== 'timeout') {
            $count = $this->client->kickTopic($this->topic, self::KICKED_TOGETHER);
            if ($count === 0) {
                break;
            }
            $reloaded += $count;
        }

        return $reloaded;
    }

    /** Deletes the dead letters. */
    public function flush(?string $queue = null): bool
    {
        return $queue !== 'timeout' && $this->client->purge($this->topic, State::Buried) > 0;
    }

    /** @return array<string, int> how many jobs there are */
    public function info(): array
    {
        $counts = $this->client->topics([$this->topic])[0] ?? null;

        return [
            'waiting' => $counts?->ready ?? 0,
            'delayed' => $counts?->delayed ?? 0,
            'reserved' => $counts?->reserved ?? 0,
            'failed' => $counts?->buried ?? 0,
            'timeout' => 0,
        ];
    }

    /**
     * What runs a job: as in async-queue, but a job that fails stays the same job, with its attempts and their reasons.
     *
     * Only its handler can fail it. If the server cannot be told how it ended, it is delivered again after handle_timeout.
     *
     * @param Job $data
     * @param MessageInterface $message
     */
    protected function getCallback($data, $message): callable
    {
        $taken = hrtime(true);

        return function () use ($data, $message, $taken): void {
            if (hrtime(true) - $taken > self::TOUCH_AFTER_NS && !$this->end(static fn (Client $client) => $client->touch($data))) {
                return; // it was cancelled, or somebody else has it
            }
            try {
                $this->event?->dispatch(new BeforeHandle($message));
                $result = $message->job()->handle();
            } catch (\Throwable $error) {
                $this->failed($data, $message, $error);

                return;
            }
            $result = $result instanceof Result ? $result : Result::ACK;
            match ($result) {
                Result::ACK, Result::DROP => $this->ack($data),
                Result::REQUEUE => $this->release($data, 0, ''),
                Result::RETRY => $message->attempts()
                    ? $this->release($data, $this->retryDelay($message), '')
                    : $this->bury($data, 'no attempt is left'),
            };
            $this->event?->dispatch(new AfterHandle($message, $result));
        };
    }

    /** Pushes the job again, as a new one. */
    protected function retry(MessageInterface $message): bool
    {
        return $this->push($message->job(), (int) ceil($this->retryDelay($message)));
    }

    protected function remove(mixed $data): bool
    {
        return $this->ack($data);
    }

    /** A job that was cancelled meanwhile, or took longer than handle_timeout, is nobody's failure: neither event nor fail(). */
    private function failed(Job $job, MessageInterface $message, \Throwable $error): void
    {
        if ($message->attempts()) {
            if ($this->release($job, $this->retryDelay($message), (string) $error)) {
                $this->event?->dispatch(new RetryHandle($message, $error));
            }
        } elseif ($this->bury($job, (string) $error)) {
            $this->event?->dispatch(new FailedHandle($message, $error));
            $message->job()->fail($error);
        }
    }

    private function retryDelay(MessageInterface $message): int|float
    {
        $last = count($this->retrySeconds) - 1;

        return $this->retrySeconds[max(0, min($message->getAttempts() - 1, $last))];
    }

    private function release(Job $job, int|float $delay, string $reason): bool
    {
        return $this->end(static fn (Client $client) => $client->release($job, delay: max(0, $delay), message: $reason));
    }

    private function bury(Job $job, string $reason): bool
    {
        return $this->end(static fn (Client $client) => $client->bury($job, $reason));
    }

    /** Ends a reservation. Returns false if it is over: the job was cancelled, or took longer than handle_timeout. */
    private function end(callable $ask): bool
    {
        try {
            $ask($this->client->with(retries: self::RETRIES));
        } catch (NoSuchJob | StaleReceipt) {
            return false;
        }

        return true;
    }

    private static function tagOf(string $message): string
    {
        return 'message:' . hash('sha256', $message);
    }
}
