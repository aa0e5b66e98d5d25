<?php

declare(strict_types=1);

namespace DelayQueue\Symfony;

use DelayQueue\Client\Client;
use DelayQueue\Client\Exception\NoSuchJob;
use DelayQueue\Client\Exception\StaleReceipt;
use DelayQueue\Client\Job;
use Symfony\Component\Messenger\Stamp\NonSendableStampInterface;

/** The job that a message came with, and the client that received it; only its id, if the message was looked up. */
final class DelayQueueReceivedStamp implements NonSendableStampInterface
{
    public function __construct(public readonly Job|string $job, public readonly Client $client)
    {
    }

    /** Whether the job still belongs to this worker. If not, it was cancelled or pushed again, or another one has it. */
    public function isHeld(): bool
    {
        if (!$this->job instanceof Job) { // it was looked up, and nobody holds it
            return true;
        }
        try {
            $this->client->with(retries: DelayQueueTransport::RETRIES)->touch($this->job);
        } catch (StaleReceipt | NoSuchJob) {
            return false;
        }

        return true;
    }
}
