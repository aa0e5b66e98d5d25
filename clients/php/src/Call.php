<?php

declare(strict_types=1);

namespace DelayQueue\Client;

/**
 * One call of an endpoint, and how its answer is read.
 *
 * @internal
 *
 * @template-covariant T
 */
final class Call
{
    public const TIMEOUT_SECONDS = 10.0;

    public const PUSH_TIMEOUT_SECONDS = 5.0; // a page of a shop may wait for it

    /**
     * @param array<mixed>|\stdClass $request
     * @param \Closure(mixed): T $read makes the result of the answer's data
     * @param bool $repeatable whether doing it twice is doing it once
     * @param bool $goneIsDone a retry may find that the first try has already ended the job
     * @param bool $endsReceipt a retry may find that the first try has already ended the reservation: then nobody knows
     * @param float|null $waitSeconds how long the server may wait before it answers; null = as its setting says
     * @param bool $polls without a job it should last as long as it may wait
     * @param (\Closure(): bool)|null $stop asked while the server waits: true ends the call
     * @param float $timeoutSeconds how long it may take with its repetitions, on top of `waitSeconds`, if the client has
     *     no limit of its own
     */
    public function __construct(
        public readonly string $path,
        public readonly array|\stdClass $request,
        public readonly \Closure $read,
        public readonly bool $repeatable = false,
        public readonly bool $goneIsDone = false,
        public readonly bool $endsReceipt = false,
        public readonly ?float $waitSeconds = 0.0,
        public readonly bool $polls = false,
        public readonly ?\Closure $stop = null,
        public readonly float $timeoutSeconds = self::TIMEOUT_SECONDS,
    ) {
    }
}
