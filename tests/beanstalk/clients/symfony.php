<?php
// Symfony's worker and its messages: php symfony.php HOST PORT TUBE COMMAND...
//
// COMMAND: dispatch NAME..., which also prints what count prints; count; or messenger:consume and its options.

require __DIR__ . '/../symfony.php';

use Symfony\Component\Messenger\Stamp\DelayStamp;

const LATER_MS = 5000;

class Task
{
    public function __construct(public string $name)
    {
    }
}

function handle(Task $task): void
{
    echo "$task->name\n";
    match ($task->name) {
        'fails' => throw new RuntimeException('no such order'),
        'kills' => posix_kill(getmypid(), SIGKILL),
        default => null,
    };
}

[, $host, $port, $tube, $command] = $argv;
$dsn = fn (string $tube) => "beanstalkd://$host:$port?tube_name=$tube&timeout=5&ttr=60";
$symfony = new Symfony(
    [
        'failure_transport' => 'failed',
        'transports' => [
            'async' => ['dsn' => $dsn($tube), 'retry_strategy' => ['max_retries' => 1, 'delay' => 1000, 'multiplier' => 2]],
            'failed' => $dsn("$tube.failed"),
        ],
        'routing' => [Task::class => 'async'],
    ],
    [Task::class => ['handle']]
);
if ($command === 'dispatch') {
    foreach (array_slice($argv, 5) as $name) {
        $symfony->bus->dispatch(new Task($name), $name === 'later' ? [new DelayStamp(LATER_MS)] : []);
    }
}
if (in_array($command, ['dispatch', 'count'], true)) {
    foreach (['async', 'failed'] as $name) {
        echo "$name {$symfony->count($name)}\n";
    }
} else {
    exit($symfony->console(array_slice($argv, 4)));
}
