<?php

declare(strict_types=1);

namespace DelayQueue\Client\Tests;

use DelayQueue\Client\Internal\Tags;
use DelayQueue\Client\State;
use PHPUnit\Framework\TestCase;

final class TagsTest extends TestCase
{
    public function testTextsAndNumbersAreTags(): void
    {
        $text = new class () {
            public function __toString(): string
            {
                return 'text';
            }
        };
        $given = new \ArrayIterator(['a', 7, 1.5, $text, State::Ready, ' a ', 7]);
        $refuse = static fn (string $said): never => throw new \LogicException($said);
        self::assertSame(['a', '7', '1.5', 'text', 'ready'], Tags::of('A', $given, $refuse));
        self::assertSame([], Tags::of('A', null, $refuse));
    }

    public function testTheRestIsLeftOutWithOneWarningForAClass(): void
    {
        $said = [];
        $warn = static function (string $message) use (&$said): void {
            $said[] = $message;
        };
        $given = [null, '', str_repeat('x', 257), "\xe9", ['b'], ...array_map(static fn (int $n): string => "t$n", range(1, 65))];
        for ($times = 0; $times < 2; $times++) {
            $taken = Tags::of('Shop\CloseOrder', $given, $warn, ['own']);
            self::assertCount(64, $taken);
            self::assertSame(['own', 't1', 't63'], [$taken[0], $taken[1], $taken[63]]);
        }
        self::assertSame([
            'delay-queue: some tags of Shop\CloseOrder were left out, and cancel() will not find the job by them: '
            . 'null is no tag, one is empty, one has more than 256 bytes, one is not UTF-8, array is no tag, '
            . 'there are more than 64',
        ], $said);
    }

    public function testATextIsNoList(): void
    {
        $this->expectException(\InvalidArgumentException::class);
        $this->expectExceptionMessage('Order::tags() returned string: must be a list such as ["order:1001"]');
        Tags::of('Order', 'order:1001', static fn () => null);
    }
}
