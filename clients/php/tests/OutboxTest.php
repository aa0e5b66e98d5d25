<?php

declare(strict_types=1);

namespace DelayQueue\Client\Tests;

use DelayQueue\Client\NewJob;
use DelayQueue\Client\Outbox;
use PHPUnit\Framework\TestCase;

final class OutboxTest extends TestCase
{
    public function testEachMethodIsOneInsert(): void
    {
        $executed = [];
        $outbox = new Outbox(static function (string $sql, array $values) use (&$executed): void {
            $executed[] = [$sql, $values];
        }, 'shop.outbox');
        self::assertSame('a', $outbox->push(new NewJob('t', id: 'a', delay: '30m', tags: ['ü/']))); // void is no failure
        $outbox->push(new NewJob('t', id: 'a', due: 9.5));
        $outbox->cancel('a');
        $outbox->cancelTag('ü');
        $outbox->cancelTag('ü', 't');
        self::assertSame([
            ['INSERT INTO shop.outbox (topic, id, body, delay, options) VALUES (?, ?, ?, ?, ?)', ['t', 'a', '', 1800, '{"ttr":60,"tags":["ü/"]}']],
            ['INSERT INTO shop.outbox (topic, id, body, due, options) VALUES (?, ?, ?, ?, ?)', ['t', 'a', '', 9.5, '{"ttr":60}']],
            ['INSERT INTO shop.outbox (id, cancel) VALUES (?, ?)', ['a', '1']],
            ['INSERT INTO shop.outbox (cancel_tag) VALUES (?)', ['ü']],
            ['INSERT INTO shop.outbox (cancel_tag, topic) VALUES (?, ?)', ['ü', 't']],
        ], $executed);
    }

    /** @dataProvider impossibleJobs */
    public function testAJobThatCannotBeIsRefusedBeforeTheInsert(NewJob $job, string $reason): void
    {
        $this->expectException(\InvalidArgumentException::class);
        $this->expectExceptionMessage($reason);
        (new Outbox(static fn (): never => throw new \LogicException('a row was inserted')))->push($job);
    }

    /** @return array<string, array{NewJob, string}> */
    public static function impossibleJobs(): array
    {
        return [
            'a topic with a comma' => [new NewJob('a,b'), 'topic: no comma'],
            'no id' => [new NewJob('t', id: ' '), 'id: must not be empty'],
            'a long time to run' => [new NewJob('t', ttr: 999999), 'ttr 999999: must be 1 to 86400 seconds'],
            'a delay that is no time' => [new NewJob('t', retry: ['x']), "retry: 'x': must be seconds or a text"],
            'an unknown word' => [new NewJob('t', ifExists: 'kep'), "if_exists 'kep': must be one of replace, keep, fail"],
            'a misspelt member' => [new NewJob('t', call: ['url' => 'http://h/', 'tiemout' => 9]), 'call.tiemout: unknown'],
            'a delay in words' => [new NewJob('t', delay: 'soon'), '"soon": must be a text like'],
            'a tag in GBK' => [new NewJob('t', tags: ["\xe9"]), 'tags.0 is not UTF-8'],
            'a body in GBK' => [new NewJob('t', "\xe9"), 'the body is not UTF-8'],
            'a key' => [new NewJob('t', idempotencyKey: 'row 7'), 'idempotencyKey: the relay gives'],
        ];
    }

    public function testACancelOfWhatNoJobCanBeIsRefusedBeforeTheInsert(): void
    {
        $outbox = new Outbox(static fn (): never => throw new \LogicException('a row was inserted'));
        $calls = [
            'id: must not be empty' => static fn () => $outbox->cancel(''),
            'id: * names no job' => static fn () => $outbox->cancel('*'),
            'id: 1025 bytes' => static fn () => $outbox->cancel(str_repeat('x', 1025)),
            'tag: must not be empty' => static fn () => $outbox->cancelTag(" \u{3000}"),
            'topic: must not be empty' => static fn () => $outbox->cancelTag('a', ''),
        ];
        foreach ($calls as $reason => $call) {
            try {
                $call();
                self::fail($reason);
            } catch (\InvalidArgumentException $error) {
                self::assertStringStartsWith($reason, $error->getMessage());
            }
        }
    }

    public function testNamesAreInsertedAsTheServerUnderstandsThemAndAStarAsAnId(): void
    {
        $inserted = [];
        $outbox = new Outbox(static function (string $sql, array $values) use (&$inserted): void {
            $inserted[] = $values;
        });
        self::assertSame('a', $outbox->push(new NewJob(' t ', id: "a\u{3000}", tags: [' x '])));
        $made = $outbox->push(new NewJob('t', id: '*'));
        $outbox->cancel("\ta ");
        self::assertSame(['t', 'a', '', 0, '{"ttr":60,"tags":["x"]}'], $inserted[0]);
        self::assertMatchesRegularExpression('/^[0-9a-f]{32}$/D', $made);
        self::assertSame($made, $inserted[1][1]);
        self::assertSame(['a', '1'], $inserted[2]);
    }

    public function testARowThatADatabaseHasRefusedInSilenceIsAnError(): void
    {
        $silent = new \PDO('sqlite::memory:', options: [\PDO::ATTR_ERRMODE => \PDO::ERRMODE_SILENT]);
        foreach ([static fn (): bool => false, $silent] as $connection) {
            try {
                (new Outbox($connection))->cancel('a');
                self::fail('nothing was thrown');
            } catch (\RuntimeException $error) {
                self::assertSame('delay_queue_outbox: the row was not inserted', $error->getMessage());
            }
        }
    }
}
