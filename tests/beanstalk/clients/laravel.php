<?php
// Laravel's worker and its jobs: php laravel.php HOST PORT QUEUE COMMAND...
//
// COMMAND: dispatch TASK..., kick, or a command of artisan such as queue:work.

require __DIR__ . '/../laravel.php';

use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Queue\InteractsWithQueue;

const LATER_S = 5;

class Task implements ShouldQueue
{
    use InteractsWithQueue, Queueable;

    public $tries = 2;
    public $backoff = 1; // second

    public function __construct(public string $name)
    {
    }

    public function handle(): void
    {
        echo "$this->name, attempt {$this->attempts()}\n";
        match ($this->name) {
            'fails' => throw new RuntimeException('no such order'),
            'kills' => posix_kill(getmypid(), SIGKILL),
            'releases' => $this->attempts() === 1 ? $this->release(1) : null,
            'buries' => $this->attempts() === 1 ? $this->job->bury() : null,
            default => null,
        };
    }

    public function failed(Throwable $error): void
    {
        echo "$this->name failed: {$error->getMessage()}\n";
    }
}

[, $host, $port, $name, $command] = $argv;
$laravel = new Laravel(
    ['driver' => 'beanstalkd', 'host' => $host, 'port' => $port, 'queue' => $name, 'retry_after' => 90, 'block_for' => 5]
);
$queue = $laravel->queue();
if ($command === 'dispatch') {
    foreach (array_slice($argv, 5) as $task) {
        $task === 'later' ? $queue->later(LATER_S, new Task($task)) : $queue->push(new Task($task));
    }
    echo "size {$queue->size()}\n";
} elseif ($command === 'kick') {
    echo "kicked {$queue->getPheanstalk()->useTube($name)->kick(10)}\n";
} else {
    exit($laravel->artisan(array_slice($argv, 4)));
}
