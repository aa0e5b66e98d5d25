<?php

declare(strict_types=1);

namespace DelayQueue\Client\Exception;

/** Code 2: no job has the id, or it has ended; no subscriber or schedule has the name. */
final class NoSuchJob extends QueueException
{
}
