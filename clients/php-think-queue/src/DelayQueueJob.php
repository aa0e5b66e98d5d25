<?php

declare(strict_types=1);

namespace DelayQueue\ThinkQueue;

use DelayQueue\Client\Client;
use DelayQueue\Client\Exception\DelayQueueException;
use DelayQueue\Client\Exception\NoSuchJob;
use DelayQueue\Client\Exception\StaleReceipt;
use DelayQueue\Client\Internal\Duration;
use DelayQueue\Client\Job as ReservedJob;
use think\App;
use think\queue\Job;

/** A job that a worker of think-queue holds. */
class DelayQueueJob extends Job
{
    private const RETRIES = 4; // within 8.5 s, the time of a restart or a failover

    public function __construct(
        App $app,
        string $connection,
        private readonly Client $client,
        private readonly ReservedJob $reserved,
    ) {
        $this->app = $app;
        $this->connection = $connection;
        $this->queue = $reserved->topic;
    }

    public function getJobId()
    {
        return $this->reserved->id;
    }

    public function attempts()
    {
        return $this->reserved->attempt;
    }

    public function getRawBody()
    {
        return $this->reserved->body;
    }

    /** Done, or failed for good: think-queue keeps the latter as failed jobs. */
    public function delete()
    {
        parent::delete();
        $this->client->with(retries: self::RETRIES)->finish($this->reserved);
    }

    /** Failed for good, unless it is no longer this worker's: think-queue records no job as failed that is deleted. */
    public function markAsFailed()
    {
        parent::markAsFailed();
        try {
            $this->isDeleted() || $this->client->with(retries: self::RETRIES)->touch($this->reserved);
        } catch (DelayQueueException) { // it was cancelled, or is delivered again after its ttr
            parent::delete();
        }
    }

    public function release($delay = 0)
    {
        $delay = Duration::until($delay);
        parent::release($delay);
        try {
            $this->client->with(retries: self::RETRIES)->release($this->reserved, delay: $delay);
        } catch (NoSuchJob | StaleReceipt) {
            // it was cancelled, or took longer than its ttr. An exception here would hide that of its handler
        }
    }
}
