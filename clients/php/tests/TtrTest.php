<?php

declare(strict_types=1);

namespace DelayQueue\Client\Tests;

use DelayQueue\Client\Internal\Ttr;
use PHPUnit\Framework\TestCase;

final class TtrTest extends TestCase
{
    public function testAJobWithALongerTimeLimitHasALongerTtr(): void
    {
        $cases = [
            [90, null, 90],
            [90, 0, 90], // no limit
            [90, 60, 90],
            [90, 61, 91],
            [90, 500, 530],
            [90, '500', 530], // of a variable of the environment
            [90, 499.5, 530],
            [600, 500, 600],
            [90, 86_400, 86_400], // the server takes no longer one
            [90, 'soon', 90], // a payload of a program's own
        ];
        foreach ($cases as [$ttr, $limit, $seconds]) {
            self::assertSame($seconds, Ttr::of($ttr, $limit));
        }
    }
}
