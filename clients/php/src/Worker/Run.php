<?php

declare(strict_types=1);

namespace DelayQueue\Client\Worker;

use DelayQueue\Client\Answer\Attempt;
use DelayQueue\Client\Client;
use DelayQueue\Client\Exception\DelayQueueException;
use DelayQueue\Client\Exception\NoSuchJob;
use DelayQueue\Client\Exception\QueueException;
use DelayQueue\Client\Exception\StaleReceipt;
use DelayQueue\Client\Exception\TooManyRequests;
use DelayQueue\Client\Exception\TransportException;
use DelayQueue\Client\Exception\Unavailable;
use DelayQueue\Client\Job;

/**
 * One run of a worker: takes jobs, runs their handlers, and tells the server how they ended.
 *
 * @internal
 */
final class Run
{
    private const POLL_SECONDS = 30.0; // the order of topics changes between polls

    private const RETRY_SECONDS = 1.0; // before the next poll while the server is away

    private const FIRST_REPORT_SECONDS = 0.5; // before the next report of a job's end; doubled up to the longest

    private const LONGEST_REPORT_SECONDS = 5.0;

    private const GRACE_SECONDS = 30.0; // for a report that finds no server, once the worker is to end or something else answers

    private const TTR_EXPIRED = 'ttr expired'; // the server's message for a job whose worker has died

    private const FATAL = E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR;

    private readonly Signals $signals;

    private readonly Lease $lease;

    private ?Job $running = null; // whose handler runs

    private string $trouble = ''; // why the last poll failed

    private string $reserve = ''; // memory for the report of a job that used up all

    /**
     * @param non-empty-array<string, callable(Job): mixed> $handlers by topic
     * @param array<string, Policy> $policies by topic
     */
    public function __construct(
        private readonly Client $client,
        private readonly array $handlers,
        private readonly array $policies,
        private readonly Log $log,
    ) {
        $this->signals = new Signals();
        $this->lease = new Lease($client, $log);
    }

    public function work(Limits $limits): void
    {
        $topics = array_map(strval(...), array_keys($this->handlers)); // PHP makes a number of "1"
        $this->log->info('waiting for jobs of {topics} at {url}', [
            'topics' => implode(', ', $topics),
            'url' => $this->client->url(),
        ]);
        $this->reportAtShutdown();
        $this->signals->listen();
        try {
            while (($why = $this->signals->hasCome() ? 'a signal has come' : $limits->reached()) === null) {
                $job = $this->pop($topics, min(self::POLL_SECONDS, $limits->leftSeconds()));
                if ($job !== null) {
                    $verdict = $this->handle($job);
                    $this->report($job, $verdict);
                    $limits->countJob();
                    if ($verdict->hasLostConnection) {
                        $limits->reach('a connection of its handler is gone; start it again, as a supervisor does');
                    }
                }
                $topics[] = array_shift($topics); // so that no topic is always last
            }
        } finally {
            $this->signals->restore();
        }
        /** @psalm-suppress PossiblyUndefinedVariable the loop's condition sets it */
        $this->log->info('the worker ends: {why}', ['why' => $why]);
    }

    /** @param list<string> $topics */
    private function pop(array $topics, float $waitSeconds): ?Job
    {
        try {
            // after a failure it does not wait, so that the log soon tells that it is over
            $wait = $this->trouble === '' ? $waitSeconds : 0.0;
            $job = $this->client->pop($topics, $wait, $this->signals->hasCome(...), $this->described());
        } catch (QueueException | TransportException $error) {
            if ($error->getMessage() !== $this->trouble) {
                $this->trouble = $error->getMessage();
                $this->log->warning('cannot fetch jobs: {reason}', ['reason' => $this->trouble]);
            }
            $this->pause(max(self::RETRY_SECONDS, $error instanceof QueueException ? $error->retryAfterSeconds : 0.0));

            return null;
        }
        if ($this->trouble !== '') {
            $this->trouble = '';
            $this->log->info('fetching jobs again');
        }

        return $job;
    }

    /** @return array{name: string, version: string, host: string, pid: int, concurrency: int} */
    private function described(): array
    {
        $host = (string) gethostname();
        $process = (int) getmypid();

        return [
            'name' => "$host:$process",
            'version' => 'PHP ' . PHP_VERSION,
            'host' => $host,
            'pid' => $process,
            'concurrency' => 1,
        ];
    }

    private function handle(Job $job): Verdict
    {
        $policy = $this->policies[$job->topic];
        if ($job->attempt > $policy->lastAttempt && $this->hasKilled($job, $policy->lastAttempt)) {
            return $this->logged($job, Verdict::failed("its worker has died $policy->lastAttempt times"));
        }
        $this->running = $job;
        $progress = new Progress($this->client, $job, $this->log);
        try {
            $observed = $job->withProgress($progress->tell(...));
            $verdict = Verdict::ofResult($this->lease->during($observed, $this->handlers[$job->topic]));
        } catch (\Throwable $error) { // other people's code: whatever it throws
            $verdict = Verdict::ofError($error);
        } finally {
            $this->running = null;
        }
        $progress->flush();

        return $verdict->end === 'finished' ? $verdict : $this->logged($job, $verdict);
    }

    /** Whether its worker has died that many times in a row: killed, or by a bug of PHP itself. */
    private function hasKilled(Job $job, int $times): bool
    {
        try {
            $last = array_slice($this->client->get($job->id)?->attempts ?? [], -$times);
        } catch (DelayQueueException) {
            return false;
        }
        $deaths = array_filter($last, static fn (Attempt $attempt): bool => $attempt->message === self::TTR_EXPIRED);

        return count($deaths) === $times;
    }

    /** Logs why an attempt has failed. Returns its verdict. */
    private function logged(Job $job, Verdict $verdict): Verdict
    {
        $this->log->warning('job {id} of {topic}, attempt {attempt}: {message}', [
            'id' => $job->id,
            'topic' => $job->topic,
            'attempt' => $job->attempt,
            'message' => $verdict->message,
        ]);

        return $verdict;
    }

    /**
     * Tells how a job ended, for as long as the server is away: only it knows whether this worker still holds the job.
     *
     * If something else answers, such as a firewall that takes a trace for an attack, it may do so for ever.
     */
    private function report(Job $job, Verdict $verdict): void
    {
        $last = INF; // when it stops trying
        for ($tries = 0; hrtime(true) / 1e9 < $last; $tries++) {
            try {
                $end = $verdict->report($this->client, $job, $this->policies[$job->topic]);
                $this->log->info('job {id} of {topic}, attempt {attempt}: {end}', [
                    'id' => $job->id,
                    'topic' => $job->topic,
                    'attempt' => $job->attempt,
                    'end' => $end,
                ]);

                return;
            } catch (StaleReceipt | NoSuchJob) {
                if ($tries === 0) { // otherwise an earlier report may have arrived, but not its answer
                    $this->log->warning('job {id} took longer than its TTR, or was cancelled', ['id' => $job->id]);
                }

                return;
            } catch (Unavailable | TooManyRequests | TransportException $error) {
                $this->log->warning('job {id}: cannot tell the server that it is {end}: {reason}', [
                    'id' => $job->id,
                    'end' => $verdict->end,
                    'reason' => $error->getMessage(),
                ]);
                $this->pause(max(
                    min(self::LONGEST_REPORT_SECONDS, self::FIRST_REPORT_SECONDS * 2 ** min($tries, 10)),
                    $error instanceof QueueException ? $error->retryAfterSeconds : 0.0,
                ));
            } catch (QueueException $error) {
                $this->log->warning('job {id} is delivered again, because its end was refused: {reason}', [
                    'id' => $job->id,
                    'reason' => $error->getMessage(),
                ]);

                return;
            }
            $isStrange = $error instanceof TransportException && $error->getCode() !== 0;
            $mayEnd = $isStrange || $this->signals->hasCome();
            $last = $mayEnd ? min($last, hrtime(true) / 1e9 + self::GRACE_SECONDS) : INF;
        }
        $this->log->warning('job {id} is delivered again, because no server has taken its end', ['id' => $job->id]);
    }

    /** Lets the end of the program report a job whose handler causes it: by exit, a fatal error, or all the memory that PHP may take. */
    private function reportAtShutdown(): void
    {
        $process = getmypid();
        $this->reserve = str_repeat('x', 1 << 16);
        register_shutdown_function(function () use ($process): void {
            $this->reserve = '';
            $job = $this->running;
            if ($job === null || getmypid() !== $process) { // a fork of the handler's ends by exit, too
                return;
            }
            $this->lease->end();
            ini_set('memory_limit', '-1');
            set_time_limit(0);
            $error = error_get_last();
            $message = $error !== null && ($error['type'] & self::FATAL) !== 0
                ? "{$error['message']}\nat {$error['file']}:{$error['line']}"
                : 'the handler has ended the program: exit or die';
            $handler = $this->handlers[$job->topic];
            $message = $handler instanceof InOrder ? "$handler->running: $message" : $message;
            try {
                $this->logged($job, Verdict::failed($message))->report($this->client, $job, $this->policies[$job->topic]);
            } catch (DelayQueueException $error) {
                $this->log->warning('job {id} is delivered again when its TTR is over: {reason}', [
                    'id' => $job->id,
                    'reason' => $error->getMessage(),
                ]);
            }
        });
    }

    /** A signal ends the pause, too. */
    private function pause(float $seconds): void
    {
        usleep(max(0, (int) ($seconds * 1e6)));
    }
}
