<?php

declare(strict_types=1);

namespace DelayQueue\Client\Worker;

use DelayQueue\Client\Internal\Fields;

/**
 * The retry schedule of a topic, for jobs that have none of their own.
 *
 * @internal
 */
final class Policy
{
    // 1 s, 2 s, 4 s, … and then each hour: 20 attempts in about eight hours, so a partner may be down for part of a night
    private const DEFAULT = ['max' => 19, 'base' => '1s', 'factor' => 2, 'cap' => '1h'];

    private const PRESETS = ['alipay' => 8, 'wechat' => 16];

    /** @var string|array<mixed> as /release takes it */
    public readonly string|array $retry;

    /** The attempt after which a job is given up. */
    public readonly int $lastAttempt;

    /**
     * @param string|array<mixed>|null $retry
     *
     * @throws \InvalidArgumentException if it is no schedule
     */
    public function __construct(string|array|null $retry)
    {
        $this->retry = $retry ?? self::DEFAULT;
        $this->lastAttempt = match (true) {
            is_string($this->retry) => self::PRESETS[$this->retry] ?? throw new \InvalidArgumentException(
                "retry \"$this->retry\": must be a list such as ['10s', '1m'], a formula, or one of " . implode(', ', array_keys(self::PRESETS)),
            ),
            array_is_list($this->retry) => count($this->retry) + 1,
            is_int($max = $this->retry['max'] ?? null) => $max + 1,
            default => throw new \InvalidArgumentException('retry: a formula needs "max", the number of its delays'),
        };
    }
}
