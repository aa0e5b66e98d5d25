<?php
// A queue connection of Laravel over this server, tested with 8, 12 and 13: app/Queue/DelayQueue.php

namespace App\Queue;

use Illuminate\Contracts\Queue\ClearableQueue;
use Illuminate\Contracts\Queue\Queue as QueueContract;
use Illuminate\Queue\Queue;
use RuntimeException;

class DelayQueue extends Queue implements QueueContract, ClearableQueue
{
    private const UNANSWERED = [-1, 6]; // codes: nobody knows whether it was done

    public function __construct(private array $settings)
    {
        $this->dispatchAfterCommit = $settings['after_commit'];
    }

    public function push($job, $data = '', $queue = null)
    {
        return $this->later(0, $job, $data, $queue);
    }

    public function later($delay, $job, $data = '', $queue = null)
    {
        $topic = $this->topic($queue);
        $options = ['delay' => $this->secondsUntil($delay)];
        return $this->enqueueUsing(
            $job,
            $this->createPayload($job, $topic, $data),
            $queue,
            $delay ?: null,
            fn ($payload, $queue) => $this->pushRaw($payload, $queue, $options)
        );
    }

    /** The jobs of a batch. */
    public function bulk($jobs, $data = '', $queue = null)
    {
        foreach ($jobs as $job) {
            $this->later($job->delay ?? 0, $job, $data, $queue);
        }
    }

    public function pushRaw($payload, $queue = null, array $options = [])
    {
        $own = json_decode($payload, true)['delay-queue'] ?? [];
        $job = ['topic' => $this->topic($queue), 'id' => '*', 'ttr' => $this->settings['ttr'], 'body' => $payload];
        return $this->call('push', $options + $own + $job)['id'] ?? $options['id'];
    }

    /** With the job's tags and ttr: queue:retry has nothing but the payload to push it again. */
    protected function createPayloadArray($job, $queue, $data = '')
    {
        $own = [];
        if (is_object($job) && method_exists($job, 'tags')) {
            $own['tags'] = $job->tags(); // such as order:1001, for cancel() below
        }
        if (isset($job->ttr)) {
            $own['ttr'] = $job->ttr; // seconds; for a job whose $timeout is longer than others'
        }
        return parent::createPayloadArray($job, $queue, $data) + ['delay-queue' => $own];
    }

    public function pop($queue = null)
    {
        $topic = $this->topic($queue);
        $job = $this->call('pop', ['topic' => $topic, 'timeout' => $this->settings['wait']]);
        return isset($job['receipt']) ? new DelayQueueJob($this->container, $this, $job, $this->connectionName) : null;
    }

    /** Ends all jobs of a tag, wherever they are. Returns how many. */
    public function cancel(string $tag): int
    {
        return $this->call('cancel', ['tag' => $tag])['count'];
    }

    public function clear($queue)
    {
        return $this->call('purge', ['topic' => $this->topic($queue)])['count'];
    }

    public function size($queue = null)
    {
        return $this->pendingSize($queue) + $this->delayedSize($queue) + $this->reservedSize($queue);
    }

    public function pendingSize($queue = null)
    {
        return $this->counts($queue)['ready'] ?? 0;
    }

    public function delayedSize($queue = null)
    {
        return $this->counts($queue)['delayed'] ?? 0;
    }

    public function reservedSize($queue = null)
    {
        return $this->counts($queue)['reserved'] ?? 0;
    }

    public function creationTimeOfOldestPendingJob($queue = null)
    {
        $age = $this->counts($queue)['oldest_ready_age'] ?? null;
        return $age === null ? null : (int) (time() - $age);
    }

    /** Calls an endpoint of the server. Returns the answer's data. */
    public function call(string $verb, array $request): mixed
    {
        $curl = curl_init("{$this->settings['url']}/$verb");
        curl_setopt_array($curl, [
            CURLOPT_POSTFIELDS => json_encode($request, JSON_THROW_ON_ERROR),
            CURLOPT_HTTPHEADER => empty($this->settings['token']) ? [] : ["Authorization: Bearer {$this->settings['token']}"],
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_TIMEOUT => $this->settings['wait'] + 10, // seconds
        ]);
        $text = curl_exec($curl);
        $answer = $text === false ? null : json_decode($text, true);
        if (!is_int($answer['code'] ?? null) || !is_string($answer['message'] ?? null)) {
            throw new RuntimeException('delay-queue: ' . (curl_error($curl) ?: 'not an answer of the queue'), -1);
        }
        if ($answer['code'] !== 0) {
            throw new RuntimeException("delay-queue: $answer[message]", $answer['code']);
        }
        return $answer['data'] ?? null;
    }

    /** Calls an endpoint again for ten seconds, the time of a restart or a failover, if no answer says that it is done. */
    public function insist(string $verb, array $request): mixed
    {
        for ($tries = 10; ; $tries--) {
            try {
                return $this->call($verb, $request);
            } catch (RuntimeException $error) {
                if ($tries === 0 || !in_array($error->getCode(), self::UNANSWERED, true)) {
                    throw $error;
                }
                sleep(1);
            }
        }
    }

    private function counts($queue): array
    {
        return $this->call('topics', ['topics' => [$this->topic($queue)]])[0] ?? [];
    }

    private function topic($queue): string
    {
        return $queue ?: $this->settings['queue'];
    }
}
