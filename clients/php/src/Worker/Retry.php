<?php

declare(strict_types=1);

namespace DelayQueue\Client\Worker;

use DelayQueue\Client\Internal\Duration;

/** A handler throws it to get the job again after `delay`, whatever its schedule says; below 0 is 0. It counts as an attempt. */
final class Retry extends \RuntimeException
{
    public readonly int|float $delaySeconds;

    public function __construct(int|float|string|\DateInterval $delay, string $message = 'to be tried again')
    {
        parent::__construct($message);
        $this->delaySeconds = max(0, Duration::delay($delay));
    }
}
