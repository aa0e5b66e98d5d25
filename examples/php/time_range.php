<?php
// A queue that is read by time range. Replaces a sorted set: ZADD, ZRANGEBYSCORE, and its race with ZREM.
//
//   php time_range.php add ID WHEN TEXT   ZADD
//   php time_range.php look FROM TO       ZRANGEBYSCORE: takes nothing
//   php time_range.php take FROM TO       ZRANGEBYSCORE and ZREM in one: each job goes to one caller only
//   php time_range.php drop ID            ZREM
//
// Times are seconds from now: -60 is a minute ago. The queue is at $DELAYQUEUE_URL.

require __DIR__ . '/delay_queue.php';

const TOPIC = 'reminder';

function show(array $job): void
{
    echo "$job[id]: $job[body]\n";
}

function look(array $range): void
{
    $cursor = '';
    do { // page by page
        $page = queue('list', ['topic' => TOPIC, 'cursor' => $cursor] + $range);
        array_map(show(...), $page['jobs']);
        $cursor = $page['cursor'];
    } while ($cursor !== '');
}

function take(array $range): void
{
    while ($jobs = queue('take', ['topic' => TOPIC, 'count' => 100] + $range)) {
        array_map(show(...), $jobs);
    }
}

function range_of(string $from, string $to): array
{
    return ['start' => time() + (float) $from, 'end' => time() + (float) $to];
}

function usage(): never
{
    fwrite(STDERR, "the first lines of this file say how to use it\n");
    exit(2);
}

[, $command, $first, $second, $text] = $argv + [null, null, null, null, null];
match (true) {
    $command === 'add' && is_numeric($second) && $text !== null => queue('push', [
        'topic' => TOPIC,
        'id' => $first,
        'due' => time() + (float) $second,
        'ttr' => 60,
        'body' => $text,
    ]),
    $command === 'look' && is_numeric($first) && is_numeric($second) => look(range_of($first, $second)),
    $command === 'take' && is_numeric($first) && is_numeric($second) => take(range_of($first, $second)),
    $command === 'drop' && $first !== null => queue('delete', ['id' => $first]),
    default => usage(),
};
