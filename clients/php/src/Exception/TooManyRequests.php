<?php

declare(strict_types=1);

namespace DelayQueue\Client\Exception;

/** Code 10: too many requests. Nothing was done; try again after `retryAfterSeconds`. */
final class TooManyRequests extends QueueException
{
}
