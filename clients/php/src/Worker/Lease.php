<?php

declare(strict_types=1);

namespace DelayQueue\Client\Worker;

use DelayQueue\Client\Client;
use DelayQueue\Client\Exception\DelayQueueException;
use DelayQueue\Client\Exception\NoSuchJob;
use DelayQueue\Client\Exception\StaleReceipt;
use DelayQueue\Client\Job;

/**
 * Keeps the reservation of a job alive while its handler runs: SIGALRM interrupts the handler for a touch.
 *
 * A handler that waits inside of a function of PHP is interrupted after that function only.
 *
 * @internal
 */
final class Lease
{
    private const FIRST_SECONDS = 1; // most jobs are done by then, and cost nothing

    private const SHARE = 3; // a lease is extended after this fraction of the TTR

    private const TIMEOUT_SECONDS = 3; // the handler waits meanwhile

    private readonly Client $client;

    public function __construct(Client $client, private readonly Log $log)
    {
        $this->client = $client->with(timeout: self::TIMEOUT_SECONDS, retries: 0);
    }

    /**
     * Calls the handler, and extends the reservation meanwhile.
     *
     * @param callable(Job): mixed $handler
     */
    public function during(Job $job, callable $handler): mixed
    {
        if (!Signals::isAvailable()) {
            return $handler($job);
        }
        $ttrSeconds = null;
        pcntl_signal(SIGALRM, function () use ($job, &$ttrSeconds): void {
            pcntl_alarm($this->extend($job, $ttrSeconds));
        });
        pcntl_alarm(self::FIRST_SECONDS);
        try {
            return $handler($job);
        } finally {
            $this->end();
        }
    }

    /** Extends it no more. Where the handler ends the program, an alarm would end it before its report. */
    public function end(): void
    {
        if (Signals::isAvailable()) {
            pcntl_alarm(0);
            pcntl_signal(SIGALRM, SIG_IGN);
        }
    }

    /** Returns the seconds until the next time; 0 = there is none. */
    private function extend(Job $job, ?int &$ttrSeconds): int
    {
        try {
            $ttrSeconds ??= $this->client->get($job->id)?->ttr;
            $this->client->touch($job);
        } catch (StaleReceipt | NoSuchJob) {
            $this->log->warning('job {id} no longer belongs to this worker', ['id' => $job->id]);

            return 0;
        } catch (DelayQueueException $error) {
            $this->log->warning('job {id} could not be extended: {reason}', [
                'id' => $job->id,
                'reason' => $error->getMessage(),
            ]);
        }

        return max(1, intdiv($ttrSeconds ?? 0, self::SHARE));
    }
}
