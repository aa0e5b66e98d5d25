<?php

declare(strict_types=1);

namespace DelayQueue\Client\Exception;

/** A job's body is not what its handler takes. */
final class BadBody extends \UnexpectedValueException implements DelayQueueException
{
}
