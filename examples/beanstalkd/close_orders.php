<?php
// Closes orders that are not paid in time, with pheanstalk 4.
//
//   php close_orders.php place ORDER SECONDS   an order, closed after SECONDS unless it is paid; prints the id of the job
//   php close_orders.php paid ID               it is paid: cancel the job
//   php close_orders.php work [JOBS]           a worker for JOBS jobs, or forever; run as many as you like

require 'vendor/autoload.php';

use Pheanstalk\Job;
use Pheanstalk\JobId;
use Pheanstalk\Pheanstalk;

const TUBE = 'orders'; // the topic
const PRIORITY = 1024; // jobs with a smaller number come before it
const TTR = 60; // seconds: a worker that is silent for a minute is dead, another one gets the job
const RETRIES = [10, 60, 600]; // seconds after failures; then it is buried

function place(Pheanstalk $queue, string $order, string $seconds): void
{
    $job = $queue->useTube(TUBE)->put(json_encode(['order' => $order]), PRIORITY, (int) $seconds, TTR);
    echo "job {$job->getId()}\n";
}

function paid(Pheanstalk $queue, string $id): void
{
    $queue->delete(new JobId((int) $id));
}

function work(Pheanstalk $queue, int $jobs): void
{
    $queue->watchOnly(TUBE);
    while ($jobs !== 0) {
        $job = $queue->reserveWithTimeout(60);
        if ($job !== null) { // null: nothing was due for a minute
            handle($queue, $job);
            $jobs--;
        }
    }
}

function handle(Pheanstalk $queue, Job $job): void
{
    try {
        $order = json_decode($job->getData(), true, flags: JSON_THROW_ON_ERROR)['order'];
        echo close_order($order), "\n";
    } catch (Throwable $error) { // a TypeError, too
        echo "{$error->getMessage()}\n";
        $attempt = (int) $queue->statsJob($job)->reserves;
        if (isset(RETRIES[$attempt - 1])) {
            $queue->release($job, PRIORITY, RETRIES[$attempt - 1]);
        } else {
            $queue->bury($job);
        }
        return;
    }
    $queue->delete($job);
}

/** Yours: UPDATE orders SET state = 'closed' WHERE id = ? AND state = 'unpaid'. Twice does no harm. */
function close_order(string $order): string
{
    if (!ctype_digit($order)) {
        throw new RuntimeException("no order $order");
    }
    return "closed order $order";
}

function usage(): never
{
    fwrite(STDERR, "the first lines of this file say how to use it\n");
    exit(2);
}

[, $command, $order, $seconds] = $argv + [null, null, null, null];
$queue = Pheanstalk::create('127.0.0.1', 11300); // it connects when it is used
match (true) {
    $command === 'place' && is_numeric($seconds) => place($queue, $order, $seconds),
    $command === 'paid' && is_numeric($order) => paid($queue, $order),
    $command === 'work' && ctype_digit($order ?? '1') => work($queue, (int) ($order ?? -1)),
    default => usage(),
};
