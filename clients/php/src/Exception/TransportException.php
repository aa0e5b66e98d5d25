<?php

declare(strict_types=1);

namespace DelayQueue\Client\Exception;

/** There was no answer, or none of a delay-queue server. Nobody knows whether the call was carried out. */
class TransportException extends \RuntimeException implements DelayQueueException
{
}
