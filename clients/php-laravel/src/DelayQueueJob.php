<?php

declare(strict_types=1);

namespace DelayQueue\Laravel;

use DelayQueue\Client\Client;
use DelayQueue\Client\Exception\DelayQueueException;
use DelayQueue\Client\Exception\NoSuchJob;
use DelayQueue\Client\Exception\StaleReceipt;
use DelayQueue\Client\Internal\Duration;
use DelayQueue\Client\Job as ReservedJob;
use Illuminate\Container\Container;
use Illuminate\Contracts\Queue\Job as JobContract;
use Illuminate\Queue\Jobs\Job;
use Illuminate\Support\Carbon;

/** A job that a worker of Laravel holds. */
class DelayQueueJob extends Job implements JobContract
{
    private const RETRIES = 4; // within 8.5 s, the time of a restart or a failover

    public function __construct(
        Container $container,
        private readonly Client $client,
        private readonly ReservedJob $reserved,
        string $connectionName,
    ) {
        $this->container = $container;
        $this->connectionName = $connectionName;
        $this->queue = $reserved->topic;
    }

    public function getJobId()
    {
        return $this->reserved->id;
    }

    public function getRawBody()
    {
        return $this->reserved->body;
    }

    public function attempts()
    {
        return $this->reserved->attempt;
    }

    /** The job as the server has handed it out. */
    public function reserved(): ReservedJob
    {
        return $this->reserved;
    }

    /** Done, or failed for good: Laravel keeps the latter in its table of failed jobs. */
    public function delete()
    {
        parent::delete();
        $this->client->with(retries: self::RETRIES)->finish($this->reserved);
    }

    /** Failed for good, unless it is no longer this worker's. It must not throw: Laravel's time limit calls it in the midst of the handler. */
    public function fail($e = null)
    {
        try {
            $this->isDeleted() || $this->client->with(retries: self::RETRIES)->touch($this->reserved);
        } catch (DelayQueueException) { // it was cancelled, or is delivered again after its ttr
            parent::delete();
        }
        parent::fail($e);
    }

    public function release($delay = 0)
    {
        $delay = Duration::until($delay, Carbon::now());
        parent::release($delay);
        try {
            $this->client->with(retries: self::RETRIES)->release($this->reserved, delay: $delay);
        } catch (NoSuchJob | StaleReceipt) {
            // it was cancelled, or took longer than its ttr. An exception here would hide that of its handler
        }
    }
}
