<?php
// A job that a worker holds: app/Queue/DelayQueueJob.php

namespace App\Queue;

use Illuminate\Container\Container;
use Illuminate\Contracts\Queue\Job as JobContract;
use Illuminate\Queue\Jobs\Job;

class DelayQueueJob extends Job implements JobContract
{
    public function __construct(Container $container, private DelayQueue $delayQueue, private array $job, $connectionName)
    {
        $this->container = $container;
        $this->connectionName = $connectionName;
        $this->queue = $job['topic'];
    }

    public function getJobId()
    {
        return $this->job['id'];
    }

    public function getRawBody()
    {
        return $this->job['body'];
    }

    public function attempts()
    {
        return $this->job['attempt'];
    }

    /** Done, or failed for good: Laravel keeps the latter in its table of failed jobs. */
    public function delete()
    {
        parent::delete();
        $this->delayQueue->insist('finish', $this->held());
    }

    public function release($delay = 0)
    {
        parent::release($delay);
        $this->delayQueue->call('release', $this->held() + ['delay' => $this->secondsUntil($delay)]);
    }

    /** With the receipt, so that a worker that was too slow does not end what another one works on. */
    private function held(): array
    {
        return ['id' => $this->job['id'], 'receipt' => $this->job['receipt']];
    }
}
