<?php

declare(strict_types=1);

namespace DelayQueue\Yii2;

use yii\console\Exception;
use yii\queue\cli\Command as CliCommand;

/** The commands of a queue: yii queue/info, queue/run, queue/listen, queue/remove. */
class Command extends CliCommand
{
    /** @var Queue */
    public $queue;

    /** @var string */
    public $defaultAction = 'info';

    /** Counts the jobs. */
    public function actionInfo(): void
    {
        $counts = $this->queue->getClient()->topics([$this->queue->topic])[0] ?? null;
        foreach (['ready', 'delayed', 'reserved', 'buried'] as $state) {
            $this->stdout("$state: " . ($counts?->$state ?? 0) . "\n");
        }
    }

    /** Works until no job is ready. */
    public function actionRun(): ?int
    {
        return $this->queue->run(false);
    }

    /**
     * Works, and waits for jobs.
     *
     * @param int|string $timeout seconds
     */
    public function actionListen($timeout = 3): ?int
    {
        if (!is_numeric($timeout) || $timeout < 1) {
            throw new Exception('Timeout must be a number from 1.');
        }

        return $this->queue->run(true, $timeout);
    }

    /**
     * Removes a job.
     *
     * @param string $id
     */
    public function actionRemove($id): void
    {
        if (!$this->queue->remove($id)) {
            throw new Exception('The job is not found.');
        }
    }

    protected function isWorkerAction($actionID)
    {
        return in_array($actionID, ['run', 'listen'], true);
    }
}
