<?php

declare(strict_types=1);

namespace DelayQueue\Client\Exception;

/** Code 6: the store does not answer, or is full. The call may or may not have been carried out. */
final class Unavailable extends QueueException
{
}
