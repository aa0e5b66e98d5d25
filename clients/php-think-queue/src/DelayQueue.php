<?php

declare(strict_types=1);

namespace DelayQueue\ThinkQueue;

use DelayQueue\Client\Client;
use DelayQueue\Client\Internal\Duration;
use DelayQueue\Client\Internal\Fields;
use DelayQueue\Client\Internal\Group;
use DelayQueue\Client\Internal\Settings;
use DelayQueue\Client\Internal\Tags;
use DelayQueue\Client\Internal\Ttr;
use DelayQueue\Client\Job as ReservedJob;
use DelayQueue\Client\Worker\Turns;
use think\helper\Str;
use think\queue\Connector;

/** A connection of think-queue over the delay-queue server: a queue is a topic. */
class DelayQueue extends Connector
{
    private const DEFAULTS = [
        'url' => null, // DELAYQUEUE_URL
        'token' => null, // DELAYQUEUE_TOKEN
        'queue' => 'default', // the topic of jobs that name none
        'ttr' => 90, // seconds that a worker may take; more than --timeout of queue:work
        'wait' => 5, // seconds that a worker waits for a job
    ];

    private readonly Turns $turns;

    /**
     * @param string $default the topic of jobs that name none
     * @param int $ttr seconds that a worker may take for a job
     * @param int|float $wait seconds that a worker waits for a job, once all its queues are empty
     */
    public function __construct(
        private readonly Client $client,
        private readonly string $default,
        private readonly int $ttr,
        private readonly int|float $wait,
    ) {
        $this->turns = new Turns();
    }

    /**
     * Makes a connection of the settings in config/queue.php. think-queue calls it.
     *
     * @param array<string, mixed> $config
     */
    public static function __make(array $config): self
    {
        $config += self::DEFAULTS;

        return new self(
            new Client($config['url'], $config['token']),
            Settings::topic($config, 'queue'),
            (int) Settings::seconds($config, 'ttr'),
            (float) Settings::seconds($config, 'wait'),
        );
    }

    /** The client, for what think-queue does not know. */
    public function client(): Client
    {
        return $this->client;
    }

    public function push($job, $data = '', $queue = null)
    {
        return $this->later(0, $job, $data, $queue);
    }

    /**
     * A class may have static methods: tags($data), such as ["order:1001"], for cancel() of the client, and group($data),
     * such as "customer-7".
     */
    public function later($delay, $job, $data = '', $queue = null)
    {
        return $this->pushRaw($this->createPayload($job, $data), $queue, Duration::argument($delay));
    }

    /** @param array<string, mixed> $options arguments of Client::push(), such as an id of your own */
    public function pushRaw($payload, $queue = null, array $options = [])
    {
        $said = json_decode($payload, true);
        $default = ['topic' => $this->topic($queue), 'body' => $payload, 'ttr' => Ttr::of($this->ttr, $said['timeout'] ?? null)];
        $job = $options + ($said['delay-queue'] ?? []) + $default;

        return $this->client->push(...$job);
    }

    public function pop($queue = null)
    {
        function_exists('pcntl_alarm') && pcntl_alarm(0); // the time limit of the job before, which think-queue leaves on
        $topic = $this->topic($queue);
        $pop = fn (float $wait): ?ReservedJob => $this->client->pop($topic, wait: $wait);
        $job = $this->turns->ask($topic, $this->wait, $pop);

        return $job === null ? null : new DelayQueueJob($this->app, $this->connection, $this->client, $job);
    }

    public function size($queue = null)
    {
        $counts = $this->client->topics([$this->topic($queue)])[0] ?? null;

        return $counts === null ? 0 : $counts->ready + $counts->delayed + $counts->reserved;
    }

    /** With the job's tags and group: queue:retry has nothing but the payload to push it again. */
    protected function createPayloadArray($job, $data = '')
    {
        $class = is_object($job) ? $job::class : $this->classOf($job);
        [$tags, $group] = [[is_object($job) ? $job : $class, 'tags'], [is_object($job) ? $job : $class, 'group']];
        $own = Fields::given([
            'tags' => is_callable($tags) ? Tags::of($class, $tags($data), $this->app->log->warning(...)) : null,
            'group' => is_callable($group) ? Group::of($class, $group($data)) : null,
        ]);

        return parent::createPayloadArray($job, $data) + ['delay-queue' => $own];
    }

    /** The class that "CloseOrder", "close_order@fire" or its full name stands for, as Job::resolve() finds it. */
    private function classOf(string $name): string
    {
        $name = (string) strstr("$name@", '@', true);
        if (str_contains($name, '\\')) {
            return $name;
        }
        $class = 'job\\' . Str::studly($name);
        // the worker's namespace is "app" even if this is a request of an application such as "app\admin"
        $root = class_exists("app\\$class") ? 'app' : $this->app->getNamespace();

        return "$root\\$class";
    }

    private function topic(?string $queue): string
    {
        return $queue ?: $this->default;
    }
}
