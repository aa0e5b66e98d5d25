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

    public function __construct(
        private readonly ?int $maxJobs,
        int|float|string|\DateInterval|null $maxTime,
        private readonly ?int $memory,
    ) {
        $this->end = $maxTime === null ? INF : self::now() + Duration::seconds($maxTime);
    }

    public function countJob(): void
    {
        $this->jobs++;
    }

    /** Why the worker ends; null = it goes on. */
    public function reached(): ?string
    {
        return match (true) {
            $this->maxJobs !== null && $this->jobs >= $this->maxJobs => "--max-jobs=$this->maxJobs is reached",
            self::now() >= $this->end => 'its time is over',
            $this->memory !== null && memory_get_usage(true) >= $this->memory * self::MEGABYTE
                => "it holds $this->memory MB or more",
            default => null,
        };
    }

    public function leftSeconds(): float
    {
        return max(0.0, $this->end - self::now());
    }

    private static function now(): float
    {
        return hrtime(true) / 1e9;
    }
}
