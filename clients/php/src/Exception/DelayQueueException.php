<?php

declare(strict_types=1);

namespace DelayQueue\Client\Exception;

/** Every exception of this package about a call or a job. */
interface DelayQueueException extends \Throwable
{
}
