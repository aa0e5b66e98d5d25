<?php

declare(strict_types=1);

namespace DelayQueue\Client\Exception;

/**
 * There was no answer, or none of a delay-queue server. Nobody knows whether the call was carried out.
 *
 * getCode() is the HTTP status of something else's answer, such as the 403 of a firewall; 0 = there was none.
 */
class TransportException extends \RuntimeException implements DelayQueueException
{
}
