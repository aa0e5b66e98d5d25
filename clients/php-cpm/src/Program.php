<?php

declare(strict_types=1);

namespace DelayQueue;

use DelayQueue\Client\Job as ReservedJob;
use DelayQueue\Client\Worker;
use Psr\Log\LoggerInterface;

/**
 * The program delayqueue-php, with a worker of delay-queue/client.
 *
 * @internal
 */
final class Program
{
    private const MEMORY = 128; // megabytes: the library ran each job in a process of its own, and its handlers may leak

    private const USAGE = "usage: delayqueue-php -c /path/to/config.ini\n";

    private const WRONG_USE = 1; // exit status

    public static function main(): int
    {
        $file = getopt('c:')['c'] ?? null;
        $config = is_string($file) && is_file($file) ? parse_ini_file($file) : false;
        if ($config === false || !is_string($config['topic'] ?? null) || trim($config['topic'], ', ') === '') {
            fwrite(STDERR, self::USAGE . "The file names at least a topic; several are one text with commas.\n");

            return self::WRONG_USE;
        }
        if (($config['bootstrap'] ?? '') !== '') {
            require_once $config['bootstrap'];
        }
        try {
            $queue = new DelayQueue(trim($config['server'] ?? 'http://127.0.0.1:9277'));
            $logger = new StandardErrorLogger();
            (new Worker($queue->client(), $logger))
                ->on(
                    (array) preg_split('/\s*,\s*/', trim($config['topic']), flags: PREG_SPLIT_NO_EMPTY),
                    static fn (ReservedJob $job) => self::handle($job, $queue, $logger),
                )
                ->run(
                    maxJobs: isset($config['max_jobs']) ? (int) $config['max_jobs'] : null,
                    memory: (int) ($config['memory'] ?? self::MEMORY),
                );
        } catch (\InvalidArgumentException $error) { // of the file: those of handlers stay in the worker
            fwrite(STDERR, "delayqueue-php: {$error->getMessage()}\n");

            return self::WRONG_USE;
        }

        return 0;
    }

    private static function handle(ReservedJob $job, DelayQueue $queue, LoggerInterface $logger): void
    {
        $body = $job->json();
        $class = (string) ($body['className'] ?? '');
        unset($body['className']);
        $queue->validateClassName($class);
        $handler = new $class();
        $handler->setServices($queue, $logger);
        $handler->setId($job->id);
        $handler->setTopic($job->topic);
        $handler->setBody($body);
        $handler->run();
    }
}
