<?php
// What happens when an order is paid: an invoice, points for the customer, a mail. Replaces a table of events and their
// handlers with a sort order.
//
//   php order_paid.php paid ORDER    an order is paid
//   php order_paid.php work [JOBS]   a worker for JOBS jobs, or forever; run as many as you like
//
// PHP 7.2 and newer. Copy in_order().

require __DIR__ . '/delay_queue.php';

/**
 * Calls handlers in their order: ['invoice' => callable, …]. Each gets the job, with what those before it returned in
 * $job['results']. Returns their texts.
 *
 * A handler that throws ends it; without $stopOnFailure those after it run all the same. Then it throws who has failed.
 */
function in_order(array $handlers, array $job, bool $stopOnFailure = true): string
{
    $job['results'] = $texts = $failures = [];
    foreach ($handlers as $name => $handler) {
        try {
            $texts[] = $text = (string) $handler($job);
            $job['results'][$name] = ['succeeded' => true, 'message' => $text];
        } catch (Throwable $error) { // a TypeError, too
            $failures[] = "$name: {$error->getMessage()}";
            $job['results'][$name] = ['succeeded' => false, 'message' => $error->getMessage()];
            if ($stopOnFailure) {
                break;
            }
        }
    }
    if ($failures !== []) {
        throw new RuntimeException(implode('; ', $failures));
    }
    return implode('; ', array_filter($texts, 'strlen'));
}

// Yours. The next attempt begins with the first one, so each must see what it has already done.

function make_invoice(array $job): string
{
    return "I-{$job['body']}"; // INSERT IGNORE INTO invoices …
}

function add_points(array $job): void
{
    if ($job['body'] === '1002') {
        throw new RuntimeException('no account');
    }
}

function notify(array $job): string
{
    return "sent {$job['results']['invoice']['message']}";
}

function work(int $jobs): void
{
    $handlers = ['invoice' => 'make_invoice', 'points' => 'add_points', 'mail' => 'notify'];
    while ($jobs !== 0) {
        $job = insist('pop', ['topic' => 'order-paid']);
        if (!isset($job['receipt'])) { // nothing was due for three minutes
            usleep(100000);
            continue;
        }
        try {
            [$verb, $message] = ['finish', in_order($handlers, $job)];
        } catch (Throwable $error) {
            [$verb, $message] = ['release', $error->getMessage()]; // the schedule says when it is delivered again
        }
        try {
            insist($verb, ['id' => $job['id'], 'receipt' => $job['receipt'], 'message' => $message]);
        } catch (QueueError $error) {
            $message = $error->getMessage(); // 2: it has ended meanwhile; 4: we were too slow, another worker has it
        }
        echo "$job[id]: $message\n";
        $jobs--;
    }
}

[, $command, $order] = $argv + [null, null, null];
if ($command === 'paid' && $order !== null) {
    queue('push', [
        'topic' => 'order-paid',
        'id' => "paid-$order", // once is enough
        'ttr' => 60, // a worker that is silent for a minute is dead: another one gets the job
        'body' => $order,
        'retry' => ['delays' => ['10s', '1m', '10m']], // after failures; then it is buried
        'retain' => 86400, // it can be looked at for a day
    ]);
} elseif ($command === 'work' && ctype_digit($order ?? '1')) {
    work((int) ($order ?? -1));
} elseif ($command !== null) {
    fwrite(STDERR, "the first lines of this file say how to use it\n");
    exit(2);
}
