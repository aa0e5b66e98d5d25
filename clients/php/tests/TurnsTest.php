<?php

declare(strict_types=1);

namespace DelayQueue\Client\Tests;

use DelayQueue\Client\Worker\Turns;
use PHPUnit\Framework\TestCase;

final class TurnsTest extends TestCase
{
    /**
     * @dataProvider rounds
     *
     * @param list<string> $expected what a worker says of its queues before
     * @param list<string> $calls the queue that is asked; "!" = it had a job, "?" = it could not be asked
     * @param list<string> $waits where it waits, by the number of the call
     */
    public function testAWorkerWaitsOnlyAtItsLastQueueOnceAllAreEmpty(array $expected, array $calls, array $waits): void
    {
        $turns = new Turns();
        $turns->expect($expected);
        $waited = [];
        foreach ($calls as $number => $call) {
            try {
                $turns->ask(rtrim($call, '!?'), 5, static function (float $wait) use ($number, $call, &$waited): ?string {
                    if ($wait === 5.0) {
                        $waited[] = "$number $call";
                    }

                    return str_ends_with($call, '?') ? throw new \RuntimeException() : (str_ends_with($call, '!') ? 'job' : null);
                });
            } catch (\RuntimeException) {
                // as the worker's framework does
            }
        }
        self::assertSame($waits, $waited);
    }

    /** @return array<string, array{list<string>, list<string>, list<string>}> */
    public static function rounds(): array
    {
        return [
            'one queue' => [['a'], ['a', 'a!', 'a'], ['0 a', '1 a!', '2 a']],
            'two that are known' => [['a', 'b'], ['a!', 'a', 'b!', 'a', 'b', 'a', 'b'], ['2 b!', '4 b', '6 b']],
            'one that is not known: after its first round' => [[], ['a', 'a', 'a!', 'a'], ['1 a', '2 a!', '3 a']],
            'two that are not known' => [[], ['a!', 'a', 'b!', 'a', 'b', 'a', 'b'], ['6 b']],
            'the last is paused' => [['a', 'b'], ['a', 'a', 'a', 'a', 'b', 'a', 'b'], ['1 a', '2 a', '3 a', '6 b']],
            'the last is resumed' => [['a', 'b'], ['a', 'a', 'b!', 'a', 'b!', 'a', 'b'], ['1 a', '4 b!', '6 b']],
            'the first poll fails' => [['a', 'b'], ['a?', 'a', 'b!', 'a', 'b'], ['2 b!', '4 b']],
            'by hand, in turn' => [[], ['a!', 'b!', 'a!', 'b!'], []],
        ];
    }
}
