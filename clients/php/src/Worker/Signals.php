<?php

declare(strict_types=1);

namespace DelayQueue\Client\Worker;

/**
 * The signals of a worker. Without the extension pcntl, they do what they do to any PHP program.
 *
 * @internal
 */
final class Signals
{
    private bool $hasCome = false;

    /** @var array<int, int|callable(int): void> */
    private array $before = [];

    /** Lets SIGTERM and SIGINT be asked for by hasCome(); a second one ends the program at once. */
    public function listen(): void
    {
        if (!self::isAvailable()) {
            return;
        }
        pcntl_async_signals(true);
        foreach ([SIGTERM, SIGINT] as $number) {
            /** @var int|callable(int): void $handler */
            $handler = pcntl_signal_get_handler($number);
            $this->before[$number] = $handler;
            pcntl_signal($number, function () use ($number): void {
                $this->hasCome = true;
                pcntl_signal($number, SIG_DFL);
            });
        }
    }

    public function hasCome(): bool
    {
        return $this->hasCome;
    }

    /** Gives the signals back. */
    public function restore(): void
    {
        foreach ($this->before as $number => $handler) {
            pcntl_signal($number, $handler);
        }
        $this->before = [];
    }

    public static function isAvailable(): bool
    {
        return function_exists('pcntl_async_signals') && function_exists('pcntl_alarm');
    }
}
