<?php

declare(strict_types=1);

namespace DelayQueue\Symfony;

use Symfony\Component\Messenger\Event\WorkerStartedEvent;

/** The transports that the worker of this process asks in turn: it waits at the last one only, once all are empty. */
final class WorkerTransports
{
    private ?string $last = null;

    public function begin(WorkerStartedEvent $event): void
    {
        $names = $event->getWorker()->getMetadata()->getTransportNames();
        $this->last = end($names) ?: null;
    }

    /** Whether to wait for a message at a transport; without a worker at any. */
    public function waitAt(string $name): bool
    {
        return $this->last === null || $this->last === $name;
    }
}
