<?php

declare(strict_types=1);

namespace DelayQueue\Client\Exception;

/** Code 7: the server wants a valid token. */
final class Unauthorized extends QueueException
{
}
