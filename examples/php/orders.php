<?php
// Closes orders that are not paid in time.
//
//   php orders.php place ORDER SECONDS   an order, closed after SECONDS unless it is paid
//   php orders.php paid ORDER            it is paid: cancel the job
//   php orders.php work [JOBS]           a worker for JOBS jobs, or forever; run as many as you like
//
// PHP 7.2 and newer.

require __DIR__ . '/delay_queue.php';

function place(string $order, string $seconds): void
{
    queue('push', [
        'topic' => 'order-close',
        'id' => "close-$order", // an id is one job: pushing it again replaces it
        'delay' => (float) $seconds,
        'ttr' => 60, // a worker that is silent for a minute is dead: another one gets the job
        'body' => json_encode(['order' => $order]),
        'tags' => ["order:$order"], // what /cancel asks for
        'retry' => ['delays' => ['10s', '1m', '10m']], // after failures; then it is buried
    ]);
}

function paid(string $order): void
{
    ['count' => $count] = queue('cancel', ['tag' => "order:$order"]);
    echo "cancelled $count\n";
}

function work(int $jobs): void
{
    while ($jobs !== 0) {
        $job = insist('pop', ['topic' => 'order-close']);
        if (!isset($job['receipt'])) { // nothing was due for three minutes
            usleep(100000);
            continue;
        }
        handle($job);
        $jobs--;
    }
}

function handle(array $job): void
{
    try {
        $order = json_decode($job['body'], true)['order'] ?? '';
        [$verb, $message, $more] = ['finish', close_order($order), []];
    } catch (Throwable $error) { // a TypeError, too: whatever it is, the queue has to know
        // the schedule says when it is delivered again; without one, in ten seconds
        [$verb, $message, $more] = ['release', $error->getMessage(), ['fallback' => 10]];
    }
    try {
        insist($verb, ['id' => $job['id'], 'receipt' => $job['receipt'], 'message' => $message] + $more);
    } catch (QueueError $error) {
        $message = $error->getMessage(); // 2: it has ended meanwhile; 4: we were too slow, another worker has it
    }
    echo "$job[id]: $message\n";
}

/** Yours: UPDATE orders SET state = 'closed' WHERE id = ? AND state = 'unpaid'. Twice does no harm. */
function close_order(string $order): string
{
    if (!ctype_digit($order)) {
        throw new RuntimeException("no order $order");
    }
    return "closed order $order";
}

function usage(): void
{
    fwrite(STDERR, "the first lines of this file say how to use it\n");
    exit(2);
}

[, $command, $order, $seconds] = $argv + [null, null, null, null];
if ($command === 'place' && is_numeric($seconds)) {
    place($order, $seconds);
} elseif ($command === 'paid' && $order !== null) {
    paid($order);
} elseif ($command === 'work' && ctype_digit($order ?? '1')) {
    work((int) ($order ?? -1));
} else {
    usage();
}
