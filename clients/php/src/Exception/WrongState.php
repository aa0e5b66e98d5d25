<?php

declare(strict_types=1);

namespace DelayQueue\Client\Exception;

/** Code 3: the state of the job does not allow this. */
final class WrongState extends QueueException
{
}
