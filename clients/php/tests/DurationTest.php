<?php

declare(strict_types=1);

namespace DelayQueue\Client\Tests;

use DelayQueue\Client\Internal\Duration;
use DelayQueue\Client\NewJob;
use DelayQueue\Client\Worker\Retry;
use PHPUnit\Framework\TestCase;

final class DurationTest extends TestCase
{
    public function testALengthOfTimeIsSecondsAsTheServerTakesThem(): void
    {
        $cases = [
            [60, 60],
            [0.25, 0.25],
            [60.0, 60], // the server refuses a ttr of 60.0
            ['500ms', 0.5],
            ['15s', 15],
            [' 30m ', 1800],
            ['1.5h', 5400],
            ['1d', 86400],
            [new \DateInterval('P1DT1H'), 90000],
            [new \DateInterval('PT0S'), 0],
        ];
        foreach ($cases as [$length, $seconds]) {
            self::assertSame($seconds, Duration::seconds($length));
        }
    }

    public function testWhatACastWouldMakeOtherSecondsOfIsNoDelay(): void
    {
        foreach ([60, '60', 1.5, null, new \DateInterval('PT1S'), new \DateTimeImmutable()] as $delay) {
            self::assertSame($delay, Duration::number($delay));
        }
        foreach (['2026-12-01 10:00', '30 minutes', '', true, [], new \stdClass()] as $delay) {
            try {
                Duration::number($delay);
                self::fail(get_debug_type($delay));
            } catch (\InvalidArgumentException $error) {
                self::assertStringContainsString('must be a number of seconds', $error->getMessage());
            }
        }
    }

    public function testADelayOfAFrameworkIsSecondsFromNow(): void
    {
        $now = new \DateTimeImmutable('2026-12-01 10:00:00.200000 UTC');
        $cases = [
            [60, 60],
            ['60', 60],
            ['0.9', 0.9],
            [1.5, 1.5],
            [null, 0],
            [-5, 0],
            [new \DateInterval('PT90S'), 90],
            [$now->diff($now->modify('-1 hour')), 0],
            [$now->modify('+1 minute'), 60],
            [new \DateTimeImmutable('2026-12-01 12:00:01.100 Europe/Paris'), 3600.9],
            [$now->modify('+1 microsecond'), 0.001], // late rather than early
            [$now->modify('-1 microsecond'), 0],
            [$now->modify('-1 hour'), 0],
            [new \DateTimeImmutable('1969-01-01 UTC'), 0],
        ];
        foreach ($cases as $place => [$delay, $seconds]) {
            self::assertSame($seconds, Duration::until($delay, $now), "case $place");
        }
        self::assertEqualsWithDelta(3600, Duration::until(new \DateTimeImmutable('+1 hour')), 60.0);
        $due = $now->modify('+13 months');
        self::assertSame(['due' => (float) $due->format('U.u')], Duration::argument($due, $now));
        self::assertSame(['delay' => 86400 * 400], Duration::argument(86400 * 400, $now)); // which the server refuses
        $this->expectExceptionMessage('must be a number of seconds');
        Duration::until('2026-12-01 10:00');
    }

    public function testAJobHasADelayOrADueTime(): void
    {
        self::assertSame(2e9, (float) (new NewJob('t', due: 2_000_000_000))->toRequest()['due']);
        self::assertArrayNotHasKey('delay', (new NewJob('t', delay: 0, due: 2_000_000_000))->toRequest());
        foreach ([60, '30m', new \DateInterval('PT1S')] as $delay) {
            try {
                new NewJob('t', delay: $delay, due: 2_000_000_000);
                self::fail('both');
            } catch (\InvalidArgumentException $error) {
                self::assertSame('delay and due exclude each other', $error->getMessage());
            }
        }
    }

    public function testAMonthIsThatWhichBeginsNow(): void
    {
        foreach (['P1M', 'P2M', 'P13M'] as $months) {
            $interval = new \DateInterval($months);
            $due = new \DateTimeImmutable('now', new \DateTimeZone('UTC'));
            $due = $due->add($interval)->getTimestamp();
            self::assertEqualsWithDelta($due, time() + Duration::delay($interval), 2.0, $months);
        }
    }

    public function testADelayOfMonthsOrDaysIsCountedInTheTimeZoneOfNow(): void
    {
        $cases = [
            ['2026-03-01 06:00 Asia/Shanghai', 'P1M', '2026-04-01 06:00 Asia/Shanghai'], // in UTC it is February
            ['2026-02-01 07:30 Asia/Shanghai', 'P1M', '2026-03-01 07:30 Asia/Shanghai'],
            ['2026-03-28 12:00 Europe/Berlin', 'P1D', '2026-03-29 12:00 Europe/Berlin'], // clocks go forward
            ['2026-03-28 12:00 Europe/Berlin', 'PT24H', '2026-03-29 13:00 Europe/Berlin'],
        ];
        foreach ($cases as [$now, $interval, $due]) {
            $now = new \DateTime($now);
            $seconds = Duration::until(new \DateInterval($interval), $now);
            self::assertSame((new \DateTimeImmutable($due))->getTimestamp(), $now->getTimestamp() + $seconds, $interval);
        }
    }

    public function testTheDaysBetweenTwoTimesAreCounted(): void
    {
        $from = new \DateTimeImmutable('2027-02-10 12:00 UTC'); // one month, of 28 days
        $to = new \DateTimeImmutable('2027-03-10 13:30:15.5 UTC');
        self::assertSame(28 * 86400 + 5415.5, Duration::seconds($from->diff($to)));
        self::assertSame(-3600, Duration::seconds($to->diff($to->modify('-1 hour'))));
    }

    public function testADelayThatIsOverIsNow(): void
    {
        $over = (new \DateTimeImmutable('@60'))->diff(new \DateTimeImmutable('@0'));
        self::assertSame(0, Duration::delay($over));
        self::assertSame(0, (new NewJob('t', delay: $over))->toRequest()['delay']);
        self::assertSame(0, (new Retry($over))->delaySeconds);
        self::assertSame(0, (new Retry(-1))->delaySeconds);
        self::assertSame(-5, Duration::delay(-5)); // the server refuses it
    }

    public function testADistanceMayBeNegative(): void
    {
        self::assertSame(-3600, Duration::distance('-1h'));
        self::assertSame(60, Duration::distance('+1m'));
        self::assertSame(-1.5, Duration::distance(-1.5));
    }

    public function testOtherTextIsRefused(): void
    {
        foreach (['', '10', '-1m', '1 m', '1w', "1m\n1", 'soon'] as $text) {
            try {
                Duration::seconds($text);
                self::fail("\"$text\" was taken");
            } catch (\InvalidArgumentException $error) {
                self::assertStringContainsString('must be a text like "500ms"', $error->getMessage());
            }
        }
    }
}
