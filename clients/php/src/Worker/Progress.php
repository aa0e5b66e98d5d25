<?php

declare(strict_types=1);

namespace DelayQueue\Client\Worker;

use DelayQueue\Client\Client;
use DelayQueue\Client\Exception\NoSuchJob;
use DelayQueue\Client\Exception\StaleReceipt;
use DelayQueue\Client\Job;

/**
 * Tells the server how far a job is: the last word, twice a second at most, and a failure only in the log.
 *
 * @internal
 */
final class Progress
{
    private const PAUSE_SECONDS = 0.5; // between two calls, for which the handler waits

    private const TIMEOUT_SECONDS = 3;

    private readonly Client $client;

    private float $last = 0.0; // when it was told, by hrtime()

    /** @var array{?float, string}|null yet to be told */
    private ?array $next = null;

    public function __construct(Client $client, private readonly Job $job, private readonly Log $log)
    {
        $this->client = $client->with(timeout: self::TIMEOUT_SECONDS, retries: 0);
    }

    public function tell(?float $percent, string $message): void
    {
        $this->next = [$percent ?? $this->next[0] ?? null, $message];
        if (hrtime(true) / 1e9 - $this->last >= self::PAUSE_SECONDS) {
            $this->flush();
        }
    }

    /** Tells what is yet to be told: where the job stood when its handler has ended. */
    public function flush(): void
    {
        if ($this->next === null) {
            return;
        }
        [$percent, $message] = $this->next;
        $this->next = null;
        try {
            $this->client->touch($this->job, progress: $percent, message: $message);
        } catch (StaleReceipt | NoSuchJob) { // the lease says so
        } catch (\Exception $error) { // also of what no JSON can hold
            $this->log->warning('job {id}: cannot tell its progress: {reason}', [
                'id' => $this->job->id,
                'reason' => $error->getMessage(),
            ]);
        }
        $this->last = hrtime(true) / 1e9;
    }
}
