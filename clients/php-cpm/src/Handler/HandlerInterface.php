<?php

declare(strict_types=1);

namespace DelayQueue\Handler;

/** What runs for a job. */
interface HandlerInterface
{
    public function run();
}
