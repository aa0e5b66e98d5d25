<?php

declare(strict_types=1);

namespace DelayQueue\Client\Tests;

use DelayQueue\Client\Exception\BadBody;
use DelayQueue\Client\Worker\Bury;
use DelayQueue\Client\Worker\Policy;
use DelayQueue\Client\Worker\Retry;
use DelayQueue\Client\Worker\Verdict;
use PHPUnit\Framework\TestCase;

final class VerdictTest extends TestCase
{
    public function testAHandlerThatReturnsHasFinishedItsJob(): void
    {
        foreach ([[null, ''], ['closed', 'closed'], [false, ''], [1, ''], [new \stdClass(), '']] as [$result, $message]) {
            $verdict = Verdict::ofResult($result);
            self::assertSame(['finished', $message], [$verdict->end, $verdict->message]);
        }
    }

    public function testWhatNobodyRunsIsAFailure(): void
    {
        $generator = (static fn (): \Generator => yield 1)();
        $promise = new class () {
            public function then(): void
            {
            }
        };
        foreach ([$generator, $promise] as $result) {
            self::assertSame('released', Verdict::ofResult($result)->end);
        }
    }

    public function testAHandlerThatThrowsHasFailedIt(): void
    {
        $verdict = Verdict::ofError(new \TypeError('no order'));
        [$first, $second] = explode("\n", $verdict->message);
        self::assertSame('released', $verdict->end);
        self::assertSame('TypeError: no order', $first); // by it, /buried groups dead letters
        self::assertSame('at ' . __FILE__ . ':' . (__LINE__ - 4), $second);
    }

    public function testAConnectionThatIsGoneIsToldFromOtherErrors(): void
    {
        $gone = new \PDOException('SQLSTATE[HY000]: General error: 2006 MySQL server has gone away');
        self::assertTrue(Verdict::ofError($gone)->hasLostConnection);
        self::assertTrue(Verdict::ofError(new \RuntimeException('order 7', 0, $gone))->hasLostConnection);
        self::assertTrue(Verdict::ofError(new \PDOException('Error while sending QUERY packet. PID=7'))->hasLostConnection);
        self::assertFalse(Verdict::ofError(new \PDOException('SQLSTATE[HY000] [2002] Connection refused'))->hasLostConnection);
        self::assertFalse(Verdict::ofError(new \RuntimeException('Error while sending the mail: mailbox full'))->hasLostConnection);
        self::assertFalse(Verdict::ofError(new Retry('1m', 'it has gone away'))->hasLostConnection);
        self::assertFalse(Verdict::ofResult('MySQL server has gone away')->hasLostConnection);
    }

    public function testAHandlerMayDecideOtherwise(): void
    {
        self::assertSame('buried', Verdict::ofError(new Bury('no such order'))->end);
        self::assertSame('buried', Verdict::ofError(new BadBody('no JSON'))->end);
        $verdict = Verdict::ofError(new Retry('1m', 'not yet'));
        self::assertSame(['released', 'not yet'], [$verdict->end, $verdict->message]);
        self::assertSame(60, (new Retry('1m'))->delaySeconds);
    }

    public function testAScheduleHasALastAttempt(): void
    {
        self::assertSame(20, (new Policy(null))->lastAttempt);
        self::assertSame(3, (new Policy(['10s', '1m']))->lastAttempt);
        self::assertSame(1, (new Policy([]))->lastAttempt);
        self::assertSame(8, (new Policy('alipay'))->lastAttempt);
        self::assertSame(6, (new Policy(['max' => 5, 'base' => '2s']))->lastAttempt);
    }

    public function testASmallMistakeInAScheduleIsToldAtOnce(): void
    {
        foreach (['wechatt', ['base' => '2s']] as $retry) {
            try {
                new Policy($retry);
                self::fail('it was taken');
            } catch (\InvalidArgumentException $error) {
                self::assertStringStartsWith('retry', $error->getMessage());
            }
        }
    }
}
