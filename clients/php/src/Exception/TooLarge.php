<?php

declare(strict_types=1);

namespace DelayQueue\Client\Exception;

/** Code 9: the request, or a body in it, is larger than the server accepts. */
final class TooLarge extends QueueException
{
}
