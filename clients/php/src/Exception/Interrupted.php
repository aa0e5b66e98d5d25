<?php

declare(strict_types=1);

namespace DelayQueue\Client\Exception;

/** The caller has ended the wait for an answer. */
final class Interrupted extends TransportException
{
}
