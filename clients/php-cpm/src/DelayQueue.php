<?php

declare(strict_types=1);

namespace DelayQueue;

use DelayQueue\Client\Call;
use DelayQueue\Client\Client;
use DelayQueue\Exception\ClassNotFoundException;
use DelayQueue\Exception\SubClassException;
use DelayQueue\Handler\AbstractHandler;

/** Pushes jobs that name the class of their handler. */
class DelayQueue
{
    private readonly Client $client;

    private int $timeout = 10;

    /** @param string $server such as http://127.0.0.1:9277; a token comes from the variable DELAYQUEUE_TOKEN */
    public function __construct($server)
    {
        $this->client = new Client($server);
    }

    /** The client, for what these classes do not know. */
    public function client(): Client
    {
        return $this->client;
    }

    /** @param int $timeout seconds that an answer may take, beyond the time that pop() waits */
    public function setTimeout($timeout)
    {
        $this->timeout = (int) $timeout;
    }

    public function getTimeout()
    {
        return $this->timeout;
    }

    /**
     * @param string $className a subclass of AbstractHandler
     *
     * @throws ClassNotFoundException
     * @throws SubClassException
     */
    public function push($className, Job $job)
    {
        $this->validateClassName($className);
        $job->appendValueToBody('className', $className);
        $request = $job->toArray();
        if (is_numeric($request['delay'])) {
            $request['delay'] = max(0, $request['delay']); // a time that has passed is now
        }
        $repeatable = $request['id'] !== '*' && ($request['if_exists'] ?? null) !== 'fail'; // as NewJob::isRepeatable()
        $this->patient()->send(new Call('/push', $request, static fn () => null, repeatable: $repeatable));
    }

    /**
     * @param list<string> $topics
     *
     * @return array{className: string, id: string, topic: string, body: array<mixed>}|null
     */
    public function pop(array $topics)
    {
        $job = $topics === [] ? null : $this->patient()->pop($topics);
        if ($job === null) {
            return null;
        }
        $body = $job->json();
        $className = (string) ($body['className'] ?? '');
        unset($body['className']);

        return ['className' => $className, 'id' => $job->id, 'topic' => $job->topic, 'body' => $body];
    }

    /** @param string $id */
    public function delete($id)
    {
        $this->patient()->delete((string) $id);
    }

    /** @param string $id */
    public function finish($id)
    {
        $this->patient()->finish((string) $id);
    }

    /**
     * @param string $className
     *
     * @throws ClassNotFoundException
     * @throws SubClassException
     */
    public function validateClassName($className)
    {
        if (!class_exists($className)) {
            throw new ClassNotFoundException("can not find class [$className]");
        }
        if (!is_subclass_of($className, AbstractHandler::class)) {
            throw new SubClassException("[$className] is not subclass of [" . AbstractHandler::class . ']');
        }
    }

    private function patient(): Client
    {
        return $this->client->with(timeout: $this->timeout);
    }
}
