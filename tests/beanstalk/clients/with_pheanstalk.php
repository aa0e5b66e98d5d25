<?php
// What a client can do, with pheanstalk: php with_pheanstalk.php HOST PORT TUBE

require 'Pheanstalk/autoload.php';

use Pheanstalk\Exception;
use Pheanstalk\Job;
use Pheanstalk\Pheanstalk;

const TTR = 60;

function client(): Pheanstalk
{
    global $argv;
    return Pheanstalk::create($argv[1], (int) $argv[2])->useTube($argv[3])->watchOnly($argv[3])->watch("$argv[3].other");
}

function counts(Job $job): string
{
    global $queue;
    $stats = $queue->statsJob($job);
    $names = ['state', 'pri', 'reserves', 'releases', 'buries', 'kicks', 'timeouts'];
    return implode(' ', array_map(fn ($name) => "$name $stats[$name]", $names));
}

$tube = $argv[3];
$queue = client();
foreach ([['late', 30, 0], ['soon', 10, 0], ['next', 20, 0], ['asleep', 0, 1000]] as [$body, $priority, $delay]) {
    $queue->put($body, $priority, $delay, TTR);
}
$stats = $queue->statsTube($tube);
echo "ready $stats->current_jobs_ready, of them urgent $stats->current_jobs_urgent, delayed $stats->current_jobs_delayed\n";

$job = $queue->reserveWithTimeout(0);
echo "{$job->getData()}\n";
$queue->delete($job);
$job = $queue->reserveWithTimeout(0);
echo "{$job->getData()}\n";
$queue->release($job, 40, 0);
$job = $queue->reserveWithTimeout(0);
echo "{$job->getData()}\n";
$queue->bury($job, 50);

echo "buried {$queue->peekBuried()->getData()}, ready {$queue->peekReady()->getData()}, delayed {$queue->peekDelayed()->getData()}\n";
echo "kicked {$queue->kick(10)}\n";
$job = $queue->reserveWithTimeout(0);
echo $job->getData(), ': ', counts($job), "\n";
$queue->delete($job);
$job = $queue->reserveWithTimeout(0);
$queue->touch($job);
echo $job->getData(), ': ', counts($job), "\n";
$queue->delete($job);
try {
    $queue->delete($job);
} catch (Exception\JobNotFoundException) {
    echo "deleted once\n";
}
if ($queue->reserveWithTimeout(0) === null) {
    echo "nothing is ready\n";
}

$binary = implode(array_map('chr', range(0, 255))) . "\r\n";
$queue->put($binary);
$job = $queue->reserveWithTimeout(0);
echo strlen($job->getData()), ' bytes', $job->getData() === $binary ? ' as they were' : '', "\n";
$queue->delete($job);
try {
    $queue->put(str_repeat('.', 65536));
} catch (Exception\JobTooBigException) {
    echo "too big\n";
}

$queue->put('of this tube', 5);
$queue->useTube("$tube.other")->put('of the other tube', 4);
$queue->useTube($tube);
foreach (range(1, 2) as $_) {
    $job = $queue->reserveWithTimeout(0);
    echo "{$job->getData()}\n";
    $queue->delete($job);
}

$queue->pauseTube($tube, 1000);
$queue->put('paused', delay: 1);
if ($queue->reserveWithTimeout(0) === null) {
    echo "nothing while paused\n";
}
$queue->pauseTube($tube, 1);
$job = $queue->reserveWithTimeout(20);
echo "{$job->getData()}\n";
$queue->delete($job);
$queue->kick(1);
$job = $queue->reserveWithTimeout(0);
echo "{$job->getData()}\n";
$queue->delete($job);

$queue->put('slow', 60, ttr: 3);
$queue->reserveWithTimeout(0);
try {
    $queue->reserveWithTimeout(20);
} catch (Exception\DeadlineSoonException) {
    echo "hurry\n";
}
usleep(1_200_000);
$queue->stats(); // a nudge: beanstalkd 1.12 sometimes misses that a time to run is over until its holder sends a command
$other = client();
$job = $other->reserveWithTimeout(20);
echo $job->getData(), ': ', counts($job), "\n";
unset($other);
gc_collect_cycles(); // it closes its connection when it is freed
$job = $queue->reserveWithTimeout(20);
echo $job->getData(), ': ', counts($job), "\n";
$queue->delete($job);
