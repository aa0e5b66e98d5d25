<?php

declare(strict_types=1);

namespace DelayQueue\Client\Worker;

use Psr\Log\LoggerInterface;

/**
 * What a worker says: to a logger, or on stderr.
 *
 * @internal
 */
final class Log
{
    private bool $isQuiet = false;

    public function __construct(private readonly ?LoggerInterface $logger)
    {
    }

    public function quiet(): void
    {
        $this->isQuiet = true;
    }

    /** @param array<string, mixed> $context */
    public function info(string $message, array $context = []): void
    {
        if ($this->logger !== null || !$this->isQuiet) {
            $this->tell('info', $message, $context);
        }
    }

    /** @param array<string, mixed> $context */
    public function warning(string $message, array $context = []): void
    {
        $this->tell('warning', $message, $context);
    }

    /** @param array<string, mixed> $context */
    private function tell(string $level, string $message, array $context): void
    {
        try {
            $this->logger === null ? self::write($message, $context) : $this->logger->log($level, $message, $context);
        } catch (\Throwable) { // other people's code, on a full disk: the end of a job must be told all the same
            self::write($message, $context);
        }
    }

    /** @param array<string, mixed> $context */
    private static function write(string $message, array $context): void
    {
        $values = [];
        foreach ($context as $name => $value) {
            $values["{{$name}}"] = is_scalar($value) ? (string) $value : '';
        }
        @file_put_contents('php://stderr', date('[Y-m-d H:i:s] ') . strtr($message, $values) . PHP_EOL);
    }
}
