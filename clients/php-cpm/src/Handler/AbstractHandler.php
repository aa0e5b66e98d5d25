<?php

declare(strict_types=1);

namespace DelayQueue\Handler;

use DelayQueue\DelayQueue;
use Psr\Log\LoggerInterface;

/**
 * What runs for a job: whatever perform() throws is a failed attempt.
 *
 * As in the library, a handler may have a $logger and a constructor of its own.
 *
 * @property-read DelayQueue $delayQueue
 * @property-read LoggerInterface $logger
 */
abstract class AbstractHandler implements HandlerInterface
{
    /** @var string */
    protected $id;

    /** @var string */
    protected $topic;

    /** @var array<mixed> */
    protected $body;

    /** @var array<string, object> by the names that handlers call them */
    private array $services = [];

    /** @param mixed $container there is none */
    public function __construct($container = null)
    {
    }

    /** @param string $name */
    public function __get($name)
    {
        return $this->services[$name];
    }

    /** @internal */
    public function setServices(DelayQueue $delayQueue, LoggerInterface $logger): void
    {
        $this->services = ['delayQueue' => $delayQueue, 'logger' => $logger];
    }

    /** @param string $id */
    public function setId($id)
    {
        $this->id = $id;
    }

    /** @param string $topic */
    public function setTopic($topic)
    {
        $this->topic = $topic;
    }

    /** @param array<mixed> $body */
    public function setBody(array $body)
    {
        $this->body = $body;
    }

    public function run()
    {
        $this->setUp();
        try {
            $this->perform();
        } finally {
            $this->tearDown();
        }
    }

    protected function setUp()
    {
    }

    protected function tearDown()
    {
    }

    abstract protected function perform();
}
