<?php

declare(strict_types=1);

namespace DelayQueue\Symfony;

use DelayQueue\Client\Client;
use DelayQueue\Client\Job;
use Symfony\Component\Messenger\Stamp\NonSendableStampInterface;

/** The job that a message came with, and the client that received it; only its id, if the message was looked up. */
final class DelayQueueReceivedStamp implements NonSendableStampInterface
{
    public function __construct(public readonly Job|string $job, public readonly Client $client)
    {
    }
}
