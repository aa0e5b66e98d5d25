<?php

declare(strict_types=1);

namespace DelayQueue\Client\Exception;

/** Code 8: the token is not for this endpoint or topic. */
final class Forbidden extends QueueException
{
}
