<?php

declare(strict_types=1);

namespace DelayQueue\Client\Tests;

use DelayQueue\Client\Client;
use DelayQueue\Client\Exception\BadBody;
use DelayQueue\Client\Exception\TransportException;
use DelayQueue\Client\IfExists;
use DelayQueue\Client\Internal\Fields;
use DelayQueue\Client\Job;
use DelayQueue\Client\NewJob;
use DelayQueue\Client\Transport\Request;
use DelayQueue\Client\Transport\Response;
use DelayQueue\Client\Transport\Transport;
use PHPUnit\Framework\TestCase;

final class RequestTest extends TestCase
{
    public function testAJobIsSentWithTheFieldsThatItHas(): void
    {
        $job = new NewJob('order-close', ['order' => '1001', 'café' => 1.0], id: 'a', delay: '30m', tags: ['user:7']);
        self::assertSame([
            'topic' => 'order-close',
            'id' => 'a',
            'body' => '{"order":"1001","café":1.0}',
            'ttr' => 60,
            'delay' => 1800,
            'tags' => ['user:7'],
        ], $job->toRequest());
    }

    public function testAMomentReplacesTheDelay(): void
    {
        $request = (new NewJob('t', due: new \DateTimeImmutable('2030-01-01T00:00:00.5Z')))->toRequest();
        self::assertSame(1893456000.5, $request['due']);
        self::assertArrayNotHasKey('delay', $request);
    }

    public function testEachJobHasAnIdOfItsOwn(): void
    {
        self::assertNotSame((new NewJob('t'))->id, (new NewJob('t'))->id);
        self::assertMatchesRegularExpression('/^[0-9a-f]{32}$/D', (new NewJob('t'))->id);
        self::assertSame('0', (new NewJob('t', id: '0'))->id);
    }

    public function testAPushThatFailsIfTheIdExistsOrWhoseIdTheServerMakesMustNotBeRepeated(): void
    {
        self::assertFalse((new NewJob('t', id: '*'))->isRepeatable());
        self::assertTrue((new NewJob('t'))->isRepeatable());
        self::assertTrue((new NewJob('t', ifExists: 'keep'))->isRepeatable());
        self::assertFalse((new NewJob('t', ifExists: 'fail'))->isRepeatable());
        self::assertFalse((new NewJob('t', ifExists: IfExists::Fail))->isRepeatable());
    }

    public function testATextThatIsNotUtf8IsRefusedByItsPlace(): void
    {
        $cases = [
            [['id' => "\xff"], 'id'],
            [['topic' => 't', 'tags' => ['a', "\xed\xa0\x80"]], 'tags.1'],
            [[['body' => 'a'], ['call' => ['headers' => (object) ['X' => "\xff"]]]], '1.call.headers.X'],
            [['a' => ["\xff" => 1]], 'a name in a'],
        ];
        foreach ($cases as [$request, $place]) {
            try {
                Fields::json($request, 'the request');
                self::fail($place);
            } catch (\InvalidArgumentException $error) {
                self::assertSame("the request: $place is not UTF-8: encode it, such as by base64_encode()", $error->getMessage());
            }
        }
    }

    public function testAScheduleIsAPresetAListOrAFormula(): void
    {
        self::assertSame(['preset' => 'wechat'], Fields::retry('wechat'));
        self::assertSame(['delays' => ['15s', 60, 3600]], Fields::retry(['15s', 60, new \DateInterval('PT1H')]));
        self::assertSame(['delays' => [60]], Fields::retry(['delays' => [new \DateInterval('PT1M')]]));
        self::assertSame(
            ['max' => 3, 'base' => 2, 'cap' => '1m'],
            Fields::retry(['max' => 3, 'base' => new \DateInterval('PT2S'), 'cap' => '1m']),
        );
        self::assertSame(['delays' => []], Fields::retry([]));
        self::assertSame(['max' => 5], Fields::retry(['max' => 5]));
        self::assertNull(Fields::retry(null));
    }

    public function testACallIsAUrlOrMore(): void
    {
        $url = 'https://example.com/';
        self::assertSame(['url' => $url], Fields::call($url));
        self::assertSame(
            '{"url":"https://example.com/","headers":{},"timeout":10,"give_up":true}',
            json_encode(
                Fields::call(['url' => $url, 'headers' => [], 'timeout' => '10s', 'give_up' => true]),
                JSON_UNESCAPED_SLASHES,
            ),
        );
        self::assertNull(Fields::call(null));
        self::assertSame(['url' => $url], (new NewJob('t', call: $url))->toRequest()['call']);
    }

    public function testHeadersOfACallHaveNames(): void
    {
        foreach (['X-Key: abc', ['X-Key: abc']] as $headers) {
            try {
                Fields::call(['url' => 'https://example.com/', 'headers' => $headers]);
                self::fail('they were taken');
            } catch (\InvalidArgumentException $error) {
                self::assertStringStartsWith('headers of a call: must be an array by name', $error->getMessage());
            }
        }
    }

    public function testACallHasALimitOnTopOfTheTimeThatTheServerWaits(): void
    {
        $transport = new class () implements Transport {
            /** @var list<float|null> */
            public array $seconds = [];

            public function send(Request $request): Response
            {
                $this->seconds[] = $request->timeoutSeconds;

                return new Response(200, '{"code":0,"message":"ok","data":null}');
            }
        };
        foreach ([new Client(transport: $transport, retries: 0), new Client(timeout: 7, transport: $transport, retries: 0)] as $queue) {
            $queue->push('t');
            $queue->get('a');
            $queue->get('a', wait: '1m');
            $queue->pop('t', wait: 5);
            $queue->pop('t');
        }
        self::assertSame([5.0, 10.0, 70.0, 15.0, null, 7.0, 7.0, 67.0, 12.0, null], $transport->seconds);
    }

    public function testRepetitionsAreWithinTheLimitOfTheirCall(): void
    {
        $transport = new class () implements Transport {
            /** @var list<float|null> */
            public array $seconds = [];

            public function send(Request $request): Response
            {
                $this->seconds[] = $request->timeoutSeconds;
                usleep(200_000);

                throw new TransportException('no answer');
            }
        };
        $queue = new Client(timeout: 0.6, transport: $transport, retries: 9);
        try {
            $queue->push('t');
            self::fail('there was an answer');
        } catch (TransportException) {
            // the second pause, of 0.4 s, would end after it
            self::assertCount(2, $transport->seconds);
            self::assertSame(0.6, $transport->seconds[0]);
            self::assertLessThanOrEqual(0.3, $transport->seconds[1]);
        }
    }

    public function testAMessageIsShortAndUtf8WhateverAHandlerSays(): void
    {
        self::assertSame("\u{fffd}\u{fffd} timeout", Fields::message("\xe9\xe8 timeout"));
        self::assertNull(Fields::message(''));
        self::assertSame(4096, strlen((string) Fields::message(str_repeat('x', 1 << 20))));
    }

    public function testABodyThatIsNoJsonIsToldFromOneThatIsNoArray(): void
    {
        $json = static fn (string $body): array => (new Job('t', 'a', $body, 1, 'r', 0.0))->json();
        self::assertSame(['a' => [1]], $json('{"a":[1]}'));
        self::assertSame(['id' => '12345678901234567890', 'n' => 1.5], $json('{"id":12345678901234567890,"n":1.5}'));
        foreach (['no json' => 'the body is not JSON: Syntax error', '7' => 'the body is JSON, but', '' => 'the body is not'] as $body => $reason) {
            try {
                $json((string) $body);
                self::fail("\"$body\" was taken");
            } catch (BadBody $error) {
                self::assertStringStartsWith($reason, $error->getMessage());
            }
        }
    }
}
