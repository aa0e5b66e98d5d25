<?php
// What Laravel puts into jobs of its own: php artisan run wrapped.php

use DelayQueue\Client\Client;
use Illuminate\Broadcasting\BroadcastEvent;
use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Mail\Mailable;
use Illuminate\Notifications\ChannelManager;
use Illuminate\Notifications\Notification;
use Illuminate\Support\Facades\Event;
use Illuminate\Support\Facades\Queue;

class Placed
{
    public $ttr = 600;

    public function __construct(public string $order)
    {
    }

    public function tags(): array
    {
        return ["order:$this->order"];
    }
}

class CloseLater implements ShouldQueue
{
    public $delay = 1800;

    public $ttr = 600;

    public function __construct(private Client $client)
    {
    }

    public function tags(Placed $event): array
    {
        return ["order:$event->order"];
    }

    public function messageGroup(Placed $event): string
    {
        return 'customer-7';
    }

    public function handle(Placed $event): void
    {
    }
}

class OrderPlaced extends Notification implements ShouldQueue
{
    use Queueable;

    public $ttr = 600;

    public function messageGroup(): string
    {
        return 'customer-7';
    }

    public function via($user): array
    {
        return ['mail'];
    }

    public function tags(): array
    {
        return ['order:1001'];
    }
}

class Invoice extends Mailable implements ShouldQueue
{
    use Queueable;

    public $ttr = 600;

    public function messageGroup(): string
    {
        return 'customer-7';
    }

    public function build()
    {
        return $this;
    }

    public function tags(): array
    {
        return ['order:1001'];
    }
}

class User
{
    public $id = 7;
}

$queue = Queue::connection('delay-queue');
Event::listen(Placed::class, CloseLater::class);
$pushes = [
    'listener' => fn () => event(new Placed('1001')),
    'notification' => fn () => (new ChannelManager(app()))->send(new User(), new OrderPlaced()),
    'mailable' => fn () => (new Invoice())->queue(app('queue')),
    'broadcast event' => fn () => $queue->push(new BroadcastEvent(new Placed('1001'))),
];
foreach ($pushes as $name => $push) {
    $push();
    [$job] = $queue->client()->listJobs('default')->jobs;
    echo "$name: ttr {$queue->client()->get($job->id)->ttr}, group '$job->group', cancelled {$queue->cancel('order:1001')}\n";
}
