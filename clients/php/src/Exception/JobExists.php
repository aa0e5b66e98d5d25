<?php

declare(strict_types=1);

namespace DelayQueue\Client\Exception;

/** Code 5: the id, or the name of a subscriber or schedule, exists already. */
final class JobExists extends QueueException
{
}
