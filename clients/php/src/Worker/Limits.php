<?php

declare(strict_types=1);

namespace DelayQueue\Client\Worker;

use DelayQueue\Client\Internal\Duration;

/**
 * When a worker takes no more jobs.
 *
 * @internal
 */
final class Limits
{
    private const MEGABYTE = 1 << 20;

    private int $jobs = 0;

    private readonly float $end;

    private readonly float $maxIdleSeconds;

    private float $idleSince;

    private ?string $reason = null;

    public function __construct(
        private readonly ?int $maxJobs,
        int|float|string|\DateInterval|null $maxTime,
        private readonly ?int $memory,
        int|float|string|\DateInterval|null $maxIdle,
    ) {
        $seconds = ['max time' => Duration::secondsOrNull($maxTime), 'max idle' => Duration::secondsOrNull($maxIdle)];
        foreach (['max jobs' => $maxJobs, 'memory' => $memory, ...$seconds] as $name => $limit) {
            if ($limit !== null && $limit <= 0) { // elsewhere 0 is no limit
                throw new \InvalidArgumentException("$name: must be more than 0; leave it out if there is no limit");
            }
        }
        $this->idleSince = self::now();
        $this->end = $this->idleSince + ($seconds['max time'] ?? INF);
        $this->maxIdleSeconds = (float) ($seconds['max idle'] ?? INF);
    }

    public function countJob(): void
    {
        $this->jobs++;
        $this->idleSince = self::now();
    }

    /** Lets the worker end for a reason of its own. */
    public function reach(string $reason): void
    {
        $this->reason = $reason;
    }

    /** Why the worker ends; null = it goes on. */
    public function reached(): ?string
    {
        return $this->reason ?? match (true) {
            $this->maxJobs !== null && $this->jobs >= $this->maxJobs => "--max-jobs=$this->maxJobs is reached",
            self::now() >= $this->end => 'its time is over',
            self::now() >= $this->idleSince + $this->maxIdleSeconds => "it had no job for $this->maxIdleSeconds s",
            $this->memory !== null && memory_get_usage(true) >= $this->memory * self::MEGABYTE
                => "it holds $this->memory MB or more",
            default => null,
        };
    }

    public function leftSeconds(): float
    {
        return max(0.0, min($this->end, $this->idleSince + $this->maxIdleSeconds) - self::now());
    }

    private static function now(): float
    {
        return hrtime(true) / 1e9;
    }
}
