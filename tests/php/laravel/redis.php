<?php
// Jobs of Laravel's connection for Redis, and the command of the recipe that moves them. Debian's PHP has no client for Redis.

use App\Jobs\CloseOrder;
use Illuminate\Contracts\Redis\Factory;
use Illuminate\Support\Facades\Artisan;
use Illuminate\Support\Facades\Queue;

/** Sends each method as a command, as the connections of Laravel do. */
final class Commands
{
    private $socket;

    public function __construct(string $address)
    {
        $this->socket = stream_socket_client("tcp://$address");
    }

    public function isCluster(): bool
    {
        return false;
    }

    public function __call(string $command, array $words)
    {
        $sent = '*' . (1 + count($words)) . "\r\n";
        foreach ([$command, ...$words] as $word) {
            $sent .= '$' . strlen($word) . "\r\n$word\r\n";
        }
        fwrite($this->socket, $sent);

        return $this->answer();
    }

    private function answer()
    {
        $line = substr(fgets($this->socket), 0, -2);
        $said = substr($line, 1);

        return match ($line[0]) {
            '+' => $said,
            ':' => (int) $said,
            '$' => $said === '-1' ? false : substr(stream_get_contents($this->socket, 2 + (int) $said), 0, -2),
            '*' => array_map(fn () => $this->answer(), array_fill(0, max(0, (int) $said), null)),
            default => throw new RuntimeException($line),
        };
    }
}

$commands = new Commands(getenv('REDIS'));
$commands->select(getenv('DATABASE'));
app()->instance('redis', new class ($commands) implements Factory {
    public function __construct(private Commands $commands)
    {
    }

    public function connection($name = null)
    {
        return $this->commands;
    }
});
config(['queue.connections.redis' => ['driver' => 'redis', 'queue' => 'default', 'retry_after' => 90]]);
require getenv('MOVE');

$redis = Queue::connection('redis');
$redis->push(new CloseOrder('1003'));
$redis->pop(); // and dies
$redis->push(new CloseOrder('1001'));
$redis->later(1800, new CloseOrder('1002'));
$payload = $commands->lindex('queues:default', 0);
Artisan::call('queue:move-redis');
echo Artisan::output(), 'left ', $redis->size(), "\n";
$redis->pushRaw($payload); // as if the command had died before it took it out
Artisan::call('queue:move-redis');
echo Artisan::output();
