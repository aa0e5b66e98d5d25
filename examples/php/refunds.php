<?php
// Refunds by WeChat Pay. Replaces a table with status, message, tries and next_time, and the cron job that reads it.
//
//   php refunds.php ask ORDER CENTS   a customer wants money back
//   php refunds.php work              a worker; run as many as you like, under a supervisor
//   php refunds.php show ORDER        status, when it is due, messages; for a month
//   php refunds.php now ORDER         do not wait for the next attempt
//   php refunds.php cancel ORDER      all jobs of the order
//
// The queue is at $DELAYQUEUE_URL, the bank at $BANK: a URL that answers 200, 4xx = never, anything else = try again.

require __DIR__ . '/delay_queue.php';

function ask(string $order, string $cents): void
{
    queue('push', [
        'topic' => 'refund',
        'id' => "refund-$order",
        'ttr' => 60, // a worker that is silent for a minute is dead: another one gets the job
        'body' => json_encode(['refund' => "refund-$order", 'cents' => (int) $cents]),
        'tags' => ["order:$order"], // the business key
        'retry' => ['preset' => 'wechat'], // after 15s, 15s, 30s, 3m ... 6h; then it is buried
        'if_exists' => 'keep', // a second request while one is under way changes nothing
        'retain' => 30 * 86400,
    ]);
}

function work(): never
{
    while (true) {
        $job = insist('pop', ['topic' => 'refund']);
        if (!isset($job['receipt'])) { // nothing was due for three minutes
            usleep(100_000);
            continue;
        }
        [$status, $said] = call_bank($job['body']);
        $verb = match (true) {
            $status === 200 => 'finish',
            $status >= 400 && $status < 500 => 'bury', // trying again is useless
            default => 'release', // the schedule says when it is delivered again
        };
        try {
            insist($verb, ['id' => $job['id'], 'receipt' => $job['receipt'], 'message' => $said]);
            echo "$job[id]: $verb: $said\n";
        } catch (QueueError $error) {
            // 2: cancelled meanwhile; 4: we were too slow, another worker has it
            echo "$job[id]: {$error->getMessage()}\n";
        }
    }
}

/** Returns status and text; status 0 if there was no answer. */
function call_bank(string $body): array
{
    $curl = curl_init(getenv('BANK'));
    curl_setopt_array($curl, [
        CURLOPT_POSTFIELDS => $body,
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_TIMEOUT => 30, // less than the TTR
    ]);
    $said = curl_exec($curl);
    return $said === false ? [0, curl_error($curl)] : [curl_getinfo($curl, CURLINFO_RESPONSE_CODE), $said];
}

function show(string $order): void
{
    foreach (queue('list', ['tag' => "order:$order"])['jobs'] as $job) {
        echo "$job[id] $job[state] ", date(DATE_ATOM, $job['delay']), " $job[message]\n";
        foreach ($job['attempts'] as $attempt) {
            echo "  attempt $attempt[attempt]: $attempt[message]\n";
        }
    }
}

function usage(): never
{
    fwrite(STDERR, "the first lines of this file say how to use it\n");
    exit(2);
}

[, $command, $order, $cents] = $argv + [null, null, null, null];
match (true) {
    $command === 'work' => work(),
    $order === null => usage(),
    $command === 'ask' && ctype_digit($cents ?? '') => ask($order, $cents),
    $command === 'show' => show($order),
    $command === 'now' => queue('kick', ['id' => "refund-$order"]),
    $command === 'cancel' => queue('cancel', ['tag' => "order:$order"]),
    default => usage(),
};
