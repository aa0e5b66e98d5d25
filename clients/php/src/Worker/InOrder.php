<?php

declare(strict_types=1);

namespace DelayQueue\Client\Worker;

use DelayQueue\Client\Job;

/**
 * Several handlers of a topic as one: they run in their order, and each gets what those before it returned.
 *
 * @internal
 */
final class InOrder
{
    /** The name of the handler that runs. */
    public string $running = '';

    private const AS_JSON = JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE;

    /** @param non-empty-array<string, callable(Job): mixed> $handlers by name */
    private function __construct(private readonly array $handlers, private readonly bool $stopOnFailure)
    {
    }

    /**
     * What calls a topic's handlers.
     *
     * @param callable(Job): mixed|array<callable(Job): mixed> $handlers one, or a list; keys that are texts are their names
     *
     * @return callable(Job): mixed
     *
     * @throws \InvalidArgumentException if there is none, or something else than a function
     */
    public static function of(callable|array $handlers, bool $stopOnFailure): callable
    {
        if (is_callable($handlers)) {
            return $handlers;
        }
        $named = [];
        foreach ($handlers as $key => $handler) {
            if (!is_callable($handler)) {
                throw new \InvalidArgumentException("handler $key: must be callable, not " . get_debug_type($handler));
            }
            $name = is_string($key) ? $key : self::nameOf($handler, count($named) + 1);
            for ([$first, $number] = [$name, 2]; isset($named[$name]); $number++) {
                $name = "$first-$number";
            }
            $named[$name] = $handler;
        }
        if ($named === []) {
            throw new \InvalidArgumentException('name a handler');
        }

        return count($named) === 1 ? reset($named) : new self($named, $stopOnFailure);
    }

    public function __invoke(Job $job): Verdict
    {
        $results = $messages = $failures = [];
        foreach ($this->handlers as $name => $handler) {
            $name = (string) $name; // PHP makes a number of "1"
            $this->running = $name;
            try {
                $returned = $handler($job->withResults($results));
                $verdict = Verdict::ofResult(is_array($returned) ? json_encode($returned, self::AS_JSON) : $returned);
            } catch (\Throwable $error) { // other people's code: whatever it throws
                $verdict = Verdict::ofError($error);
            }
            $results[$name] = new HandlerResult($verdict->end === 'finished', $verdict->message);
            if ($verdict->end !== 'finished') {
                $failures[$name] = $verdict;
                if ($this->stopOnFailure) {
                    break;
                }
            } elseif ($verdict->message !== '') {
                $messages[] = $verdict->message;
            }
        }

        return $failures === [] ? Verdict::ofResult(implode('; ', $messages)) : Verdict::ofSeveral($failures);
    }

    private static function nameOf(callable $handler, int $number): string
    {
        $name = (new \ReflectionFunction(\Closure::fromCallable($handler)))->getShortName();

        return match (true) {
            is_object($handler) && $name === '__invoke' => (new \ReflectionClass($handler))->getShortName(),
            str_contains($name, '{closure') => "handler $number",
            default => $name,
        };
    }
}
