<?php

declare(strict_types=1);

namespace DelayQueue\Client\Exception;

/** Code 1: a field is missing or not what it may be. Nothing was changed; do not repeat the call. */
final class InvalidRequest extends QueueException
{
}
