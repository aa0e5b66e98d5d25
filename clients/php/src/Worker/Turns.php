<?php

declare(strict_types=1);

namespace DelayQueue\Client\Worker;

/**
 * How long to wait at each of the queues that a framework's worker asks in turn: only at the last one, once all are empty.
 *
 * A framework names one queue at a time, so their order is learned from its calls: one that is asked again begins a round.
 *
 * @internal to the packages for frameworks
 */
final class Turns
{
    /** @var list<string> the queues of a whole round */
    private array $order = [];

    /** @var list<string> those of this round so far, all of them empty */
    private array $asked = [];

    /**
     * What a worker says of its queues before the first round. Later its calls count: it may leave out one that is paused.
     *
     * @param list<string> $queues
     */
    public function expect(array $queues): void
    {
        $this->order = $this->order ?: $queues;
    }

    /**
     * Asks a queue.
     *
     * @template T
     *
     * @param float $waitSeconds how long an idle worker waits
     * @param callable(float): (T|null) $pop gets how long to wait now, and returns a job or null
     *
     * @return T|null
     */
    public function ask(string $queue, float $waitSeconds, callable $pop): mixed
    {
        if (in_array($queue, $this->asked, true)) {
            [$this->order, $this->asked] = [$this->asked, []];
        }
        $this->asked[] = $queue;
        $isEmpty = false;
        try {
            $job = $pop($this->asked === $this->order ? $waitSeconds : 0.0);
            $isEmpty = $job === null;

            return $job;
        } finally {
            $isEmpty || $this->begin(); // also after an error: the worker begins with its first queue
        }
    }

    private function begin(): void
    {
        if ($this->order !== [] && count($this->asked) > count($this->order)) { // one was paused before
            $this->order = $this->asked;
        }
        $this->asked = [];
    }
}
