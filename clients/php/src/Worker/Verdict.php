<?php

declare(strict_types=1);

namespace DelayQueue\Client\Worker;

use DelayQueue\Client\Client;
use DelayQueue\Client\Exception\BadBody;
use DelayQueue\Client\Job;

/**
 * What happens to a job after its handler.
 *
 * @internal
 */
final class Verdict
{
    private const LAST_CALLS = 3; // of a trace, in the message of the job

    /**
     * @param 'finished'|'released'|'buried' $end what the worker asks for
     * @param int|float|null $delaySeconds of one that is released; null = as its retry schedule says
     */
    private function __construct(
        public readonly string $end,
        public readonly string $message,
        private readonly int|float|null $delaySeconds = null,
        public readonly bool $hasLostConnection = false,
    ) {
    }

    /** Of a handler that returned this. */
    public static function ofResult(mixed $result): self
    {
        if ($result instanceof self) { // of several handlers
            return $result;
        }
        // these have only been made: nobody runs a generator, nobody waits for a promise
        if ($result instanceof \Generator || (is_object($result) && method_exists($result, 'then'))) {
            return self::failed('the handler returned a ' . get_debug_type($result) . ', which nobody runs');
        }

        return new self('finished', match (true) {
            is_string($result), $result instanceof \Stringable => (string) $result,
            default => '',
        });
    }

    /** Of a handler that threw this. */
    public static function ofError(\Throwable $error): self
    {
        return match (true) {
            $error instanceof Retry => new self('released', $error->getMessage(), $error->delaySeconds),
            $error instanceof Bury, $error instanceof BadBody => new self('buried', $error->getMessage()),
            default => new self('released', self::describe($error), hasLostConnection: LostConnection::isCauseOf($error)),
        };
    }

    /**
     * Of several handlers: the job is buried if another attempt would help none of them. It is delivered again by its
     * schedule, unless each one has told a delay: then after the shortest.
     *
     * @param non-empty-array<string, self> $failures by the handlers' names
     */
    public static function ofSeveral(array $failures): self
    {
        $heads = $traces = $delays = [];
        foreach ($failures as $name => $failure) {
            [$head, $trace] = explode("\n", $failure->message, 2) + [1 => ''];
            $heads[] = "$name: $head";
            $traces[] = $trace;
            if ($failure->end === 'released') {
                $delays[] = $failure->delaySeconds;
            }
        }
        $told = array_filter($delays, static fn (int|float|null $delay): bool => $delay !== null);

        return new self(
            $delays === [] ? 'buried' : 'released',
            implode("\n", [implode('; ', $heads), ...array_filter($traces)]),
            $told !== [] && count($told) === count($delays) ? min($told) : null,
            array_filter($failures, static fn (self $one): bool => $one->hasLostConnection) !== [],
        );
    }

    /** Of a handler that came to no end. */
    public static function failed(string $message): self
    {
        return new self('released', $message);
    }

    /** Tells the server. Returns how the job ended: the last attempt of a schedule is not released. */
    public function report(Client $client, Job $job, Policy $policy): string
    {
        if ($this->end === 'released') {
            $due = $client->release($job, $this->delaySeconds, retry: $policy->retry, message: $this->message);

            return $due === null ? 'it was the last attempt, the job is buried or has expired' : 'released';
        }
        $this->end === 'finished' ? $client->finish($job, $this->message) : $client->bury($job, $this->message);

        return $this->end;
    }

    private static function describe(\Throwable $error): string
    {
        $lines = [get_debug_type($error) . ": {$error->getMessage()}", "at {$error->getFile()}:{$error->getLine()}"];
        foreach (array_slice($error->getTrace(), 0, self::LAST_CALLS) as $call) {
            if (str_starts_with($call['file'] ?? '', __DIR__)) {
                break; // the rest is ours
            }
            /** @psalm-suppress PossiblyUndefinedArrayOffset each call has its function */
            $lines[] = 'in ' . ($call['class'] ?? '') . ($call['type'] ?? '') . $call['function'] . '(), called at '
                . ($call['file'] ?? 'PHP') . ':' . ($call['line'] ?? '-');
        }

        return implode("\n", $lines);
    }
}
