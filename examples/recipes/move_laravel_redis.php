<?php
// Belongs into routes/console.php: php artisan queue:move-redis QUEUE moves what waits in a queue of the connection `redis`.
//
// Stop its workers before. You can run it again at any time, as a job that an earlier run has pushed is not pushed again.

use Illuminate\Support\Facades\Artisan;
use Illuminate\Support\Facades\Queue;

Artisan::command('queue:move-redis {queue=default}', function (string $queue) {
    $redis = Queue::connection('redis')->getConnection();
    $key = (fn () => method_exists($this, 'getQueueRedisKey')
        ? $this->getQueueRedisKey($queue) // Laravel 13.5: on a cluster it has braces
        : $this->getQueue($queue))->call(Queue::connection('redis'));
    $push = fn (string $payload, float $due) => Queue::connection('delay-queue')->pushRaw($payload, $queue, [
        'id' => 'laravel-redis-' . json_decode($payload)->id,
        'due' => $due,
        'ifExists' => 'keep',
        'retain' => '7d', // after its end, so that the server knows it
    ]);
    $moved = 0;
    while ($payload = $redis->lindex($key, 0)) {
        $push($payload, time());
        $redis->lpop($key);
        $moved++;
    }
    foreach (["$key:delayed", "$key:reserved"] as $set) { // the latter: their workers have died
        while ($payloads = $redis->zrange($set, 0, 99)) {
            foreach ($payloads as $payload) {
                $push($payload, (float) $redis->zscore($set, $payload));
                $redis->zrem($set, $payload);
                $moved++;
            }
        }
    }
    $this->info("moved $moved jobs");
});
