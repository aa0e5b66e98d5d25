<?php

declare(strict_types=1);

namespace DelayQueue\Client\Worker;

/** What a handler returned, if it was a text or an array (as JSON), or why it failed: for those after it, in Job::$results. */
final class HandlerResult
{
    public function __construct(
        public readonly bool $succeeded,
        public readonly string $message,
    ) {
    }
}
