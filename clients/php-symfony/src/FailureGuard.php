<?php

declare(strict_types=1);

namespace DelayQueue\Symfony;

use Symfony\Component\Messenger\Event\WorkerMessageFailedEvent;

/** Keeps what failed, but is no longer this worker's, from failure transports of any kind. */
final class FailureGuard
{
    public function check(WorkerMessageFailedEvent $event): void
    {
        $received = $event->getEnvelope()->last(DelayQueueReceivedStamp::class);
        if ($received !== null && !$event->willRetry() && !$received->isHeld()) {
            $event->setForRetry(); // Messenger sends it nowhere then: the one that sends retries has been asked before
        }
    }
}
