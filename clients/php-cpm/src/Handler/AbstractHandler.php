<?php

declare(strict_types=1);

namespace DelayQueue\Handler;

use DelayQueue\DelayQueue;
use Psr\Log\LoggerInterface;

/** What runs for a job: whatever perform() throws is a failed attempt. */
abstract class AbstractHandler implements HandlerInterface
{
    /** @var string */
    protected $id;

    /** @var string */
    protected $topic;

    /** @var array<mixed> */
    protected $body;

    public function __construct(
        protected readonly DelayQueue $delayQueue,
        protected readonly LoggerInterface $logger,
    ) {
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
