<?php

declare(strict_types=1);

namespace DelayQueue\Client\Tests;

use DelayQueue\Client\Worker\Signals;
use PHPUnit\Framework\TestCase;

/** @requires extension pcntl */
final class SignalsTest extends TestCase
{
    public function testSignalsGetBackTheHandlersThatTheyHad(): void
    {
        $own = static fn () => null;
        pcntl_signal(SIGTERM, $own);
        pcntl_signal(SIGINT, SIG_IGN);
        $signals = new Signals();
        $signals->listen();
        self::assertNotSame($own, pcntl_signal_get_handler(SIGTERM));
        $signals->restore();
        $restored = [pcntl_signal_get_handler(SIGTERM), pcntl_signal_get_handler(SIGINT)];
        pcntl_signal(SIGTERM, SIG_DFL);
        pcntl_signal(SIGINT, SIG_DFL);
        self::assertSame([$own, SIG_IGN], $restored);
    }
}
