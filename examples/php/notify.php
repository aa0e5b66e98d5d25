<?php
// Payment notifications as Alipay sends them: to a merchant's URL, again and again until it says "success".
// Replaces your own notifier and its timers.
//
//   php notify.php push TRADE URL [DELAYS]   by Alipay's schedule, or your own: 1s,1s,1m
//   php notify.php work                      a worker; run as many as you like, under a supervisor
//   php notify.php show TRADE                its state
//
// The queue is at $DELAYQUEUE_URL.

require __DIR__ . '/delay_queue.php';

function push(string $trade, string $url, ?string $delays): void
{
    queue('push', [
        'topic' => 'notify',
        'id' => "notify-$trade",
        'ttr' => 60,
        'body' => json_encode(['url' => $url, 'form' => ['trade_no' => $trade, 'trade_status' => 'TRADE_SUCCESS']]),
        // alipay: 2m, 10m, 10m, 1h, 2h, 6h, 15h after a failure; then buried
        'retry' => $delays === null ? ['preset' => 'alipay'] : ['delays' => explode(',', $delays)],
        'retain' => 7 * 86400,
    ]);
}

function work(): never
{
    while (true) {
        $job = insist('pop', ['topic' => 'notify']);
        if (!isset($job['receipt'])) { // nothing was due for three minutes
            usleep(100_000);
            continue;
        }
        try {
            $said = call_merchant(json_decode($job['body'], true, flags: JSON_THROW_ON_ERROR));
        } catch (Throwable $error) { // a TypeError, too: whatever it is, the queue has to know
            $said = $error->getMessage();
        }
        $verb = trim($said) === 'success' ? 'finish' : 'release'; // as `expect` of a call: white space around it is no matter
        try {
            insist($verb, ['id' => $job['id'], 'receipt' => $job['receipt'], 'message' => $said]);
            echo "$job[id]: $verb: $said\n";
        } catch (QueueError $error) {
            // 2: deleted meanwhile; 4: we were too slow, another worker has it
            echo "$job[id]: {$error->getMessage()}\n";
        }
    }
}

function call_merchant(array $call): string
{
    $curl = curl_init($call['url']);
    curl_setopt_array($curl, [
        CURLOPT_POSTFIELDS => http_build_query($call['form']),
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_FAILONERROR => true, // 400 and above
        CURLOPT_TIMEOUT => 30, // less than the TTR
    ]);
    $said = curl_exec($curl);
    return $said === false ? curl_error($curl) : $said;
}

function show(string $trade): void
{
    $job = queue('get', ['id' => "notify-$trade"]) ?? throw new RuntimeException("no notification of $trade");
    $due = date(DATE_ATOM, $job['delay']);
    echo "$job[id] $job[state] $due after $job[attempt] attempts: $job[message]\n";
}

function usage(): never
{
    fwrite(STDERR, "the first lines of this file say how to use it\n");
    exit(2);
}

[, $command, $trade, $url, $delays] = $argv + [null, null, null, null, null];
match (true) {
    $command === 'push' && $url !== null => push($trade, $url, $delays),
    $command === 'work' => work(),
    $command === 'show' && $trade !== null => show($trade),
    default => usage(),
};
