<?php

declare(strict_types=1);

namespace DelayQueue;

use Psr\Log\AbstractLogger;

/** Logs lines on stderr. */
final class StandardErrorLogger extends AbstractLogger
{
    /** @param array<mixed> $context */
    public function log($level, $message, array $context = []): void
    {
        $values = [];
        foreach ($context as $name => $value) {
            $values["{{$name}}"] = is_scalar($value) || $value instanceof \Stringable ? (string) $value : get_debug_type($value);
        }
        @file_put_contents('php://stderr', date('[Y-m-d H:i:s] ') . "$level: " . strtr((string) $message, $values) . PHP_EOL);
    }
}
