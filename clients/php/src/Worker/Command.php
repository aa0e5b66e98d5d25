<?php

declare(strict_types=1);

namespace DelayQueue\Client\Worker;

use DelayQueue\Client\Worker;

/**
 * The program delay-queue-worker.
 *
 * @internal
 */
final class Command
{
    private const USAGE = <<<'TEXT'
        usage: delay-queue-worker [OPTION…] FILE

        Runs the Worker that the PHP file returns, until SIGTERM or Ctrl-C; then it ends after the job in hand.

          --max-jobs=N     ends after N jobs
          --max-time=TIME  takes no more jobs after this time: 3600, 30m, 1h
          --max-idle=TIME  ends when no job has come for this time
          --memory=MB      takes no more jobs once PHP holds this number of megabytes
          --quiet          logs warnings only
          --help           shows this

        TEXT;

    private const WRONG_USE = 2; // exit status

    /** @param list<string> $arguments without the name of the program */
    public static function main(array $arguments): int
    {
        try {
            [$options, $file] = self::parse($arguments);
            if (isset($options['help'])) {
                echo self::USAGE;

                return 0;
            }
            $worker = self::load($file);
            if (isset($options['quiet'])) {
                $worker->quiet();
            }
            $worker->run(
                maxJobs: self::number($options, 'max-jobs'),
                maxTime: self::time($options['max-time'] ?? null),
                memory: self::number($options, 'memory'),
                maxIdle: self::time($options['max-idle'] ?? null),
            );
        } catch (\InvalidArgumentException $error) {
            fwrite(STDERR, "delay-queue-worker: {$error->getMessage()}\n");

            return self::WRONG_USE;
        }

        return 0;
    }

    /**
     * @param list<string> $arguments
     *
     * @return array{array<string, string>, string} the options and the file
     */
    private static function parse(array $arguments): array
    {
        $options = [];
        $files = [];
        foreach ($arguments as $argument) {
            if (!str_starts_with($argument, '-')) {
                $files[] = $argument;
            } elseif (preg_match('/^--(help|quiet|(max-jobs|max-time|max-idle|memory)=(.+))$/D', $argument, $found) === 1) {
                $options[$found[2] ?? $found[1]] = $found[3] ?? '';
            } else {
                throw new \InvalidArgumentException("$argument: no such option, or without its =VALUE; --help names them");
            }
        }
        if (count($files) !== 1 && !isset($options['help'])) {
            throw new \InvalidArgumentException('name one PHP file; --help says more');
        }

        return [$options, $files[0] ?? ''];
    }

    private static function load(string $file): Worker
    {
        $path = realpath($file);
        if ($path === false) {
            throw new \InvalidArgumentException("$file: there is no such file");
        }
        $worker = (static fn (): mixed => require $path)();

        return $worker instanceof Worker
            ? $worker
            : throw new \InvalidArgumentException("$file: must return a " . Worker::class);
    }

    /** @param array<string, string> $options */
    private static function number(array $options, string $name): ?int
    {
        $text = $options[$name] ?? null;
        if ($text !== null && !ctype_digit($text)) {
            throw new \InvalidArgumentException("--$name=$text: must be a number from 1");
        }

        return $text === null ? null : (int) $text;
    }

    private static function time(?string $text): int|string|null
    {
        return $text !== null && ctype_digit($text) ? (int) $text : $text;
    }
}
