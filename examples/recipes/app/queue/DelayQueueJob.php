<?php

namespace app\queue;

use think\App;
use think\queue\Job;

use function DelayQueue\insist;

/** A job that a worker of think-queue holds. */
class DelayQueueJob extends Job
{
    public function __construct(App $app, string $connection, private array $job)
    {
        $this->app = $app;
        $this->connection = $connection;
        $this->queue = $job['topic'];
    }

    public function getJobId()
    {
        return $this->job['id'];
    }

    public function attempts()
    {
        return $this->job['attempt'];
    }

    public function getRawBody()
    {
        return $this->job['body'];
    }

    /** Done, or failed for good: think-queue keeps the latter as failed jobs. */
    public function delete()
    {
        parent::delete();
        insist('finish', $this->held());
    }

    public function release($delay = 0)
    {
        parent::release($delay);
        insist('release', $this->held() + ['delay' => (int) $delay]);
    }

    private function held(): array
    {
        return ['id' => $this->job['id'], 'receipt' => $this->job['receipt']];
    }
}
