<?php

declare(strict_types=1);

namespace DelayQueue\Yii2;

use DelayQueue\Client\Client;
use DelayQueue\Client\Exception\NoSuchJob;
use DelayQueue\Client\Exception\StaleReceipt;
use DelayQueue\Client\Internal\Group;
use DelayQueue\Client\Internal\Settings;
use DelayQueue\Client\Internal\Tags;
use DelayQueue\Client\Job;
use DelayQueue\Client\State;
use yii\queue\cli\Queue as CliQueue;

/** A queue of yii2-queue over the delay-queue server, as one topic. */
class Queue extends CliQueue
{
    private const RETRIES = 4; // within 8.5 s, the time of a restart or a failover

    private const BASE64 = 'base64,'; // before a message that is not UTF-8

    /** @var string|null null = the variable DELAYQUEUE_URL, or else http://127.0.0.1:9277 */
    public $url;

    /** @var string|null null = the variable DELAYQUEUE_TOKEN */
    public $token;

    /** @var string */
    public $topic = 'queue';

    /** @var int|float|string seconds, or a text such as "1m", until a job that failed is delivered again */
    public $retryDelay = 10;

    /** @var string */
    public $commandClass = Command::class;

    private ?Client $client = null;

    /** @var list<string> of the job that is being pushed */
    private array $tags = [];

    private ?string $group = null; // of the job that is being pushed

    /** The client, for what yii2-queue does not know. */
    public function getClient(): Client
    {
        return $this->client ??= new Client($this->url, $this->token);
    }

    /** A job may have methods: tags(), such as ["order:1001"], by which cancel() finds it, and group(), such as "customer-7". */
    public function push($job)
    {
        $outer = [$this->tags, $this->group]; // a handler of EVENT_BEFORE_PUSH may push, too
        $this->tags = is_object($job) && method_exists($job, 'tags')
            ? Tags::of($job::class, $job->tags(), \Yii::warning(...))
            : [];
        $this->group = is_object($job) && method_exists($job, 'group') ? Group::of($job::class, $job->group()) : null;
        try {
            return parent::push($job);
        } finally {
            [$this->tags, $this->group] = $outer;
        }
    }

    /** Ends all jobs of a tag, wherever they are. Returns how many. */
    public function cancel(string $tag): int
    {
        return $this->getClient()->cancel($tag);
    }

    /** Ends a job in whatever state. Returns whether there was one. */
    public function remove($id)
    {
        $exists = $this->status($id) !== self::STATUS_DONE;
        $this->getClient()->delete((string) $id);

        return $exists;
    }

    public function status($id)
    {
        return match ($this->getClient()->get((string) $id)?->state) {
            State::Delayed, State::Ready, State::Buried => self::STATUS_WAITING,
            State::Reserved => self::STATUS_RESERVED,
            default => self::STATUS_DONE,
        };
    }

    /**
     * Works on jobs. The commands of the console call it.
     *
     * @param bool $repeat whether to go on when no job comes
     * @param int|string $timeout seconds that it waits for one
     *
     * @return int|null exit status
     */
    public function run($repeat, $timeout = 0)
    {
        $retryDelay = Settings::seconds(['retryDelay' => $this->retryDelay], 'retryDelay');

        return $this->runWorker(function (callable $canContinue) use ($repeat, $timeout, $retryDelay): void {
            while ($canContinue()) {
                $job = $this->getClient()->pop($this->topic, wait: (float) $timeout);
                if ($job !== null) {
                    $this->work($job, $retryDelay);
                } elseif (!$repeat) {
                    break;
                }
            }
        });
    }

    protected function pushMessage($message, $ttr, $delay, $priority)
    {
        $isText = preg_match('//u', $message) === 1;

        return $this->getClient()->push(
            $this->topic,
            $isText ? $message : self::BASE64 . base64_encode($message),
            ttr: (int) $ttr,
            delay: max(0, (int) $delay), // a time that has passed is now
            priority: $priority === null ? null : (int) $priority,
            tags: $this->tags,
            group: $this->group,
        );
    }

    private function work(Job $job, int|float $retryDelay): void
    {
        $client = $this->getClient()->with(retries: self::RETRIES);
        $ttr = $client->get($job->id)?->ttr;
        if ($ttr === null) { // it has been removed meanwhile
            return;
        }
        $message = str_starts_with($job->body, self::BASE64)
            ? (string) base64_decode(substr($job->body, strlen(self::BASE64)))
            : $job->body;
        $isDone = $this->handleMessage($job->id, $message, $ttr, $job->attempt);
        try {
            $isDone ? $client->finish($job) : $client->release($job, fallback: $retryDelay);
        } catch (StaleReceipt | NoSuchJob) {
            // it was removed, or took longer than its ttr: it is not ours any more
        }
    }
}
