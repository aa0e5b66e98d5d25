<?php

namespace app\queue;

use think\queue\Connector;
use think\queue\InteractsWithTime;

use function DelayQueue\queue;

class DelayQueue extends Connector
{
    use InteractsWithTime;

    public function __construct(private array $config)
    {
    }

    public function push($job, $data = '', $queue = null)
    {
        return $this->later(0, $job, $data, $queue);
    }

    public function later($delay, $job, $data = '', $queue = null)
    {
        return $this->pushRaw($this->createPayload($job, $data), $queue, ['delay' => $this->secondsUntil($delay)]);
    }

    /** @param array $options fields of /push, such as an id of your own */
    public function pushRaw($payload, $queue = null, array $options = [])
    {
        $job = ['topic' => $this->topic($queue), 'id' => '*', 'ttr' => $this->config['ttr'], 'body' => $payload];
        return queue('push', $options + $job)['id'] ?? $options['id'];
    }

    public function pop($queue = null)
    {
        $job = queue('pop', ['topic' => $this->topic($queue), 'timeout' => $this->config['wait']]);
        return isset($job['receipt']) ? new DelayQueueJob($this->app, $this->connection, $job) : null;
    }

    public function size($queue = null)
    {
        $topic = queue('topics', ['topics' => [$this->topic($queue)]])[0] ?? [];
        return ($topic['ready'] ?? 0) + ($topic['delayed'] ?? 0) + ($topic['reserved'] ?? 0);
    }

    private function topic($queue): string
    {
        return $queue ?: $this->config['queue'];
    }
}
