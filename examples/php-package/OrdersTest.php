<?php
// vendor/bin/phpunit OrdersTest.php

use DelayQueue\Client\{Client, Job};
use PHPUnit\Framework\TestCase;

/** Yours. */
class Orders
{
    public function __construct(private Client $queue)
    {
    }

    public function place(string $order): void
    {
        $this->queue->push('order-close', ['order' => $order], id: "close-$order", delay: '30m');
    }

    public function close(Job $job): string
    {
        return "closed order {$job->json()['order']}";
    }
}

class OrdersTest extends TestCase
{
    public function testAnOrderIsClosedAfterHalfAnHour(): void
    {
        $queue = $this->createMock(Client::class);
        $queue->expects($this->once())->method('push')->with('order-close', ['order' => '1001'], 'close-1001', '30m');
        (new Orders($queue))->place('1001');
    }

    public function testAJobClosesItsOrder(): void
    {
        $job = new Job('order-close', 'close-1001', '{"order":"1001"}', attempt: 1, receipt: 'a', due: 0.0);
        $this->assertSame('closed order 1001', (new Orders($this->createStub(Client::class)))->close($job));
    }
}
