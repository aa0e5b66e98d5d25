<?php

declare(strict_types=1);

namespace DelayQueue\Client;

use DelayQueue\Client\Internal\PushRules;
use DelayQueue\Client\Worker\InOrder;
use DelayQueue\Client\Worker\Limits;
use DelayQueue\Client\Worker\Log;
use DelayQueue\Client\Worker\Policy;
use DelayQueue\Client\Worker\Run;
use Psr\Log\LoggerInterface;

/**
 * Runs functions for the jobs of topics, one job at a time: start as many workers as you need.
 *
 * A handler that returns has finished its job, whatever it returns; one that throws has failed it, and the job is delivered
 * again by its retry schedule, or by that of on(). Handlers throw Worker\Retry and Worker\Bury to decide otherwise.
 */
final class Worker
{
    private const MOST_TOPICS = 64; // of a /pop

    /** @var array<string, callable(Job): mixed> */
    private array $handlers = [];

    /** @var array<string, Policy> */
    private array $policies = [];

    private readonly Log $log;

    /**
     * @param Client $client by default that of the variables DELAYQUEUE_URL and DELAYQUEUE_TOKEN
     * @param LoggerInterface|null $logger null = lines on stderr
     */
    public function __construct(
        private readonly Client $client = new Client(),
        ?LoggerInterface $logger = null,
    ) {
        $this->log = new Log($logger);
    }

    /**
     * Calls `handler` with each Job of these topics. A text that it returns is the job's message.
     *
     * Several run in their order: `['invoice' => …, 'mail' => …]`. Each finds in $job->results what those before it
     * returned. The first failure ends the attempt, and the next one begins with the first handler.
     *
     * @param string|list<string> $topics
     * @param callable(Job): mixed|array<callable(Job): mixed> $handler one, or several, by their names or as a list
     * @param string|array<mixed>|null $retry as in push(), for jobs that have no schedule of their own; null = 20
     *     attempts in about eight hours, then the job is buried
     * @param bool $stopOnFailure false = the handlers after one that failed run all the same; then the attempt has failed
     */
    public function on(
        string|array $topics,
        callable|array $handler,
        string|array|null $retry = null,
        bool $stopOnFailure = true,
    ): self {
        $policy = new Policy($retry);
        $handler = InOrder::of($handler, $stopOnFailure);
        foreach ((array) $topics as $topic) {
            $topic = PushRules::pushedTopic('topic', $topic); // the server understands it so
            $this->handlers[$topic] = $handler;
            $this->policies[$topic] = $policy;
        }
        if (count($this->handlers) > self::MOST_TOPICS) {
            throw new \InvalidArgumentException('a worker waits for ' . self::MOST_TOPICS . ' topics: start another one');
        }

        return $this;
    }

    /**
     * Works until SIGTERM or SIGINT, then ends after the job in hand; a second one ends the program at once.
     *
     * It ends, too, when a handler fails because its connection to a database is gone: start it again.
     *
     * @param int|null $maxJobs ends after this number of jobs
     * @param int|float|string|\DateInterval|null $maxTime takes no more jobs after this time
     * @param int|null $memory takes no more jobs once PHP holds this number of megabytes
     * @param int|float|string|\DateInterval|null $maxIdle ends when no job has come for this time
     */
    public function run(
        ?int $maxJobs = null,
        int|float|string|\DateInterval|null $maxTime = null,
        ?int $memory = null,
        int|float|string|\DateInterval|null $maxIdle = null,
    ): void {
        if ($this->handlers === []) {
            throw new \InvalidArgumentException('this worker has no handlers: call on()');
        }
        $limits = new Limits($maxJobs, $maxTime, $memory, $maxIdle);
        (new Run($this->client, $this->handlers, $this->policies, $this->log))->work($limits);
    }

    /** Logs warnings only, if it has no logger. */
    public function quiet(): self
    {
        $this->log->quiet();

        return $this;
    }
}
