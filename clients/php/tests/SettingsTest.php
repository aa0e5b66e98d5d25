<?php

declare(strict_types=1);

namespace DelayQueue\Client\Tests;

use DelayQueue\Client\Internal\Settings;
use PHPUnit\Framework\TestCase;

final class SettingsTest extends TestCase
{
    public function testATimeIsANumberOrATextOfOne(): void
    {
        foreach ([[60, 60], ['60', 60], ['1m', 60], [0.5, 0.5], ['0.5', 0.5], [0, 0]] as [$given, $seconds]) {
            self::assertSame($seconds, Settings::seconds(['ttr' => $given], 'ttr'));
        }
    }

    /** @dataProvider wrongOnes */
    public function testAnotherValueIsRefusedByItsName(string $kind, mixed $value, string $reason): void
    {
        $this->expectException(\InvalidArgumentException::class);
        $this->expectExceptionMessage($reason);
        $kind === 'topic' ? Settings::topic(['queue' => $value], 'queue') : Settings::seconds(['ttr' => $value], 'ttr');
    }

    /** @return array<string, array{string, mixed, string}> */
    public static function wrongOnes(): array
    {
        return [
            'a list of topics' => ['topic', ['high', 'low'], 'queue: must be the name of one topic, such as "orders", not array'],
            'no topic' => ['topic', '', 'queue: must be the name of one topic, such as "orders", not ""'],
            'a word' => ['seconds', 'soon', 'ttr: "soon": must be a text like'],
            'two numbers' => ['seconds', '5,10', 'ttr: "5,10": must be a text like'],
            'a list of times' => ['seconds', [5], 'ttr: array: must be seconds'],
        ];
    }
}
