<?php
// Calls every verb of the client with every argument: php every_verb.php [TOKEN]
//
// Prints a line of JSON for each call: its path and request, the data of the server's answer, and what the client made of it.

require 'vendor/autoload.php';

use DelayQueue\Client\Client;
use DelayQueue\Client\Exception\QueueException;
use DelayQueue\Client\Job;
use DelayQueue\Client\NewJob;
use DelayQueue\Client\State;
use DelayQueue\Client\Transport\CurlTransport;
use DelayQueue\Client\Transport\Request;
use DelayQueue\Client\Transport\Response;
use DelayQueue\Client\Transport\Transport;

final class Recorder implements Transport
{
    /** @var list<array{path: string, request: mixed, data: mixed}> */
    public array $calls = [];

    private CurlTransport $curl;

    public function __construct()
    {
        $this->curl = new CurlTransport();
    }

    public function send(Request $request): Response
    {
        $response = $this->curl->send($request);
        $this->calls[] = [
            'path' => parse_url($request->url, PHP_URL_PATH),
            'request' => json_decode($request->body),
            'data' => json_decode($response->body)->data,
        ];

        return $response;
    }
}

/** A result with the names that the API has. */
function plain(mixed $value): mixed
{
    if ($value instanceof BackedEnum) {
        return $value->value;
    }
    if (!is_object($value) && !is_array($value)) {
        return $value;
    }
    $plain = [];
    foreach (is_object($value) ? get_object_vars($value) : $value as $name => $member) {
        $plain[is_object($value) ? strtolower(preg_replace('/(?<!^)[A-Z]/', '_$0', $name)) : $name] = plain($member);
    }

    return is_object($value) || !array_is_list($plain) ? (object) $plain : $plain;
}

$recorder = new Recorder();
$queue = new Client(transport: $recorder);
$now = time();
$range = ['start' => $now - 9, 'end' => $now + 9999];
$between = ['after' => $now - 9, 'before' => $now + 9999];
$retry = ['max' => 2, 'base' => '2s', 'factor' => 3, 'cap' => '1m', 'jitter' => 0];
$target = ['url' => 'https://example.com/', 'method' => 'PUT', 'headers' => ['Authorization' => 'Bearer abc'], 'timeout' => '9s', 'expect' => 'ok', 'give_up' => true];
$parent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

$camel = fn (string $name) => preg_replace_callback('/_(\w)/', fn ($found) => strtoupper($found[1]), $name);
$texts = array_fill_keys(array_map($camel, array_keys(NewJob::TEXTS)), 'row 7');

$calls = [
    fn () => $queue->push('a', ['n' => 1], id: 'a1', delay: 0, tags: ['t'], retry: $retry, ifExists: 'replace', maxWait: '10m', retain: '1h', expire: 600, priority: 7, group: 'g', traceparent: $parent),
    fn () => $queue->push(...['topic' => 'b', 'id' => 'b0', 'delay' => '1h'] + $texts),
    fn () => $queue->push('a', 'later', id: 'a2', due: $now + 3600, ttr: '1m', retry: 'wechat'),
    fn () => $queue->pushMany([new NewJob('a', id: 'a3', tags: ['t']), new NewJob('a', id: 'a4', ttr: 0), new NewJob('a', id: 'a5', delay: 60)]),
    fn () => $queue->push('b', id: 'b1', delay: '1h', call: 'https://example.com/'),
    fn () => $queue->push('b', id: 'b2', delay: '1h', call: $target),
    fn () => $queue->getMany(['b1', 'b2']),
    fn () => $queue->pop('none,a', wait: 5, worker: ['name' => 'w', 'version' => '1', 'host' => 'h', 'pid' => 1, 'concurrency' => 1]),
    fn () => $queue->touch($GLOBALS['held'][0], ttr: 90, progress: 40, message: 'page 4 of 10'),
    fn () => $queue->release($GLOBALS['held'][0], delay: 0, fallback: 1, retry: ['1m', 2], message: 'not yet'),
    fn () => $queue->get('a1', options: true, wait: 0),
    fn () => $queue->popMany(['a'], count: 1, wait: '5s', worker: 'w'),
    fn () => $queue->bury($GLOBALS['held'][0], message: 'no such order 10017'),
    fn () => $queue->get('a1', wait: '5s'),
    fn () => $queue->getMany(['a1', 'a2', 'none'], options: true),
    fn () => $queue->buried('a', reason: 'no such order #', ids: 5, cursor: '', start: $now, step: '1h', steps: 9),
    fn () => $queue->note('no such order #', 'being fixed'),
    fn () => $queue->kick('a1', body: ['n' => 2]),
    fn () => $queue->kickMany(['a1']),
    fn () => $queue->kickTopic('a', count: 3, state: State::Delayed),
    fn () => $queue->kickTag('t', topic: 'a', state: 'buried'),
    fn () => $queue->reschedule('a2', due: $now + 7200, priority: 9),
    fn () => $queue->rescheduleMany(['a2', 'none'], by: '-1h'),
    fn () => $queue->rescheduleTag('t', topic: 'a', delay: '1h'),
    fn () => $queue->pop('a', wait: 1),
    fn () => $queue->finish($GLOBALS['held'][0], message: 'done'),
    fn () => $queue->push('a', id: 'a6'),
    fn () => $queue->finishMany(['a6', 'none'], message: 'done'),
    fn () => $queue->pushMany([new NewJob('a', id: 'a7'), new NewJob('a', id: 'a8')]),
    fn () => $queue->popMany('a', 2, 1),
    fn () => $queue->finishMany($GLOBALS['held']),
    fn () => $queue->pushMany([new NewJob('a', id: 'a9'), new NewJob('a', id: 'a10')]),
    fn () => $queue->pop('a', 1),
    fn () => $queue->delete($GLOBALS['held'][0], message: 'not wanted'),
    fn () => $queue->pop('a', 1),
    fn () => $queue->deleteMany([$GLOBALS['held'][0], 'none'], message: 'not wanted'),
    fn () => $queue->limit('held', groupConcurrency: 1),
    fn () => $queue->pushMany([new NewJob('held', id: 'h1', group: 'g'), new NewJob('held', id: 'h2', group: 'g')]),
    fn () => $queue->pop('held', 1),
    fn () => $queue->get('h2'),
    fn () => $queue->find(id: 'h2'),
    fn () => $queue->listJobs('a', 't', State::Delayed, ...$range, limit: 1),
    fn () => $queue->listJobs('a', ...$between, cursor: ''),
    fn () => $queue->find(id: 'a', text: '1', topic: 'a', limit: 9, cursor: '', message: 'm', tag: 't', state: 'buried', start: $now, end: $now + 1, group: 'g'),
    fn () => $queue->find(after: $now, before: $now + 1),
    fn () => $queue->forecast($now, $now + 7200, step: '1h', topic: 'a'),
    fn () => $queue->take('a', ...$range, count: 1),
    fn () => $queue->take('a', ...$between),
    fn () => $queue->cancel('t', topic: 'a'),
    fn () => $queue->limit('a', rate: 50, burst: 5, concurrency: 10, groupConcurrency: 2, groupOrder: true, buriedRetain: '7d', buriedTo: 'reports', maxJobs: 100_000, whenFull: 'drop_oldest'),
    fn () => $queue->pause('a', length: '1h'),
    fn () => $queue->push('a'),
    fn () => $queue->topics(['a'], match: 'a', only: 'limited', sort: 'ready', reverse: true, offset: 0, limit: 9, dueSoon: true, rates: true, groups: true),
    fn () => $queue->resume('a'),
    fn () => $queue->limit('a', rate: null, burst: null, concurrency: null, groupConcurrency: null, groupOrder: null, buriedRetain: null, buriedTo: null, maxJobs: null, whenFull: null),
    fn () => $queue->topics(),
    fn () => $queue->history('a', span: '2d'),
    fn () => $queue->subscribe('s', 'b', 'https://example.com/', order: 1, timeout: '9s', retry: ['1m'], concurrency: 2,
        secret: 'whsec_' . base64_encode(str_repeat('x', 32)), expect: 'ok', onFailure: 'continue', payload: 'event',
        method: 'PUT', headers: ['X-Key' => 'abc'], ifExists: 'fail'),
    fn () => $queue->subscribe('s', headers: [], ifExists: 'change'),
    fn () => $queue->subscribers('b', calls: true),
    fn () => $queue->subscribersPage('b', calls: true, limit: 1, cursor: ''),
    fn () => $queue->pauseSubscriber('s'),
    fn () => $queue->resumeSubscriber('s'),
    fn () => $queue->acceptStore(),
    fn () => $queue->trySubscriber('none', 'x'),
    fn () => $queue->unsubscribe('s'),
    fn () => $queue->schedule('s', 'b', ['n' => 1], cron: '0 9 * * *', tz: 'Asia/Shanghai', ttr: '2m', catchUp: 'skip', paused: true,
        call: ['url' => 'https://example.com/', 'headers' => ['X-Key' => 'abc'], 'timeout' => '9s'], ifExists: 'keep', group: 'g'),
    fn () => $queue->schedule('s', 'b', every: '1h', ifExists: 'replace'),
    fn () => $queue->schedule('s', paused: false, ifExists: 'change'),
    fn () => $queue->schedules('b'),
    fn () => $queue->schedulesPage('b', limit: 1, cursor: ''),
    fn () => $queue->previewSchedule(cron: '0 9 * * *', tz: 'Asia/Shanghai'),
    fn () => $queue->previewSchedule(every: 3600),
    fn () => $queue->runSchedule('s'),
    fn () => $queue->unschedule('s'),
    fn () => $queue->purge('a', state: 'ended'),
    fn () => $queue->stats(counts: true),
    fn () => $queue->whoami(['name' => 'a']),
    fn () => $queue->workers(),
];
$held = []; // the jobs that were popped last
foreach ($calls as $call) {
    try {
        $last = $call();
        $jobs = array_filter((array) (is_object($last) ? [$last] : $last), fn ($one) => $one instanceof Job);
        $held = array_values($jobs) ?: $held;
    } catch (QueueException $error) {
        $last = ['refused' => $error->getCode(), 'message' => $error->getMessage()];
    }
    echo json_encode(end($recorder->calls) + ['result' => plain($last)], JSON_THROW_ON_ERROR), "\n";
}
