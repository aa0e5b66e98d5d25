<?php
// What a program did with RabbitMQ's delayed message exchange: php delayed_exchange.php

require __DIR__ . '/delay_queue.php';

/** Was basic_publish() of a message with the header x-delay. */
function publish(string $routingKey, string $body, int $delayMs): void
{
    queue('push', [
        'topic' => $routingKey,
        'id' => '*', // or a name of your own: then the job can be cancelled, and pushing it twice makes one
        'delay' => $delayMs / 1000,
        'ttr' => 60, // a message that is not acknowledged in a minute is delivered again
        'body' => $body,
        'retry' => ['delays' => ['10s', '1m', '10m']], // what you built from TTLs and dead letter exchanges
    ]);
}

/**
 * Was basic_consume(). Returning is the ack, an exception the nack.
 *
 * @param int $prefetch jobs at a time; the `ttr` of all of them starts when they come, so they must be done within it
 */
function consume(string $topic, callable $handle, int $prefetch, int $rounds = PHP_INT_MAX): void
{
    while ($rounds-- > 0) {
        $jobs = insist('pop', ['topic' => $topic, 'count' => $prefetch]);
        if (!is_array($jobs) || $jobs === []) { // nothing was due for three minutes
            usleep(100_000);
            continue;
        }
        foreach ($jobs as $job) {
            [$verb, $message] = ['finish', ''];
            try {
                $handle($job['body']);
            } catch (Throwable $error) {
                [$verb, $message] = ['release', $error->getMessage()];
            }
            try {
                insist($verb, ['id' => $job['id'], 'receipt' => $job['receipt'], 'message' => $message]);
            } catch (QueueError $error) { // 2 or 4: the `ttr` was over, so the job was delivered again
                fwrite(STDERR, "$job[id]: {$error->getMessage()}\n");
            }
        }
    }
}

publish('welcome', 'Hello', 500);
consume('welcome', function (string $body) {
    echo "$body\n";
}, prefetch: 1, rounds: 1);
