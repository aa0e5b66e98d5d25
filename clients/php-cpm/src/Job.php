<?php

declare(strict_types=1);

namespace DelayQueue;

/** A job to push. Every public property is sent: a subclass can add fields of /push, such as $tags, $group or $retry. */
class Job implements \JsonSerializable
{
    /** @var string */
    public $topic;

    /** @var string */
    public $id;

    /** @var int seconds */
    public $delay;

    /** @var int seconds */
    public $ttr;

    /** @var array<mixed> */
    public $body;

    public function getTopic()
    {
        return $this->topic;
    }

    /** @param string $topic */
    public function setTopic($topic)
    {
        $this->topic = $topic;
    }

    public function getId()
    {
        return $this->id;
    }

    /** @param string $id */
    public function setId($id)
    {
        $this->id = $id;
    }

    public function getDelay()
    {
        return $this->delay;
    }

    /** @param int $delay seconds */
    public function setDelay($delay)
    {
        $this->delay = $delay;
    }

    public function getTtr()
    {
        return $this->ttr;
    }

    /** @param int $ttr seconds */
    public function setTtr($ttr)
    {
        $this->ttr = $ttr;
    }

    public function getBody()
    {
        return $this->body;
    }

    /** @param array<mixed> $body */
    public function setBody(array $body)
    {
        $this->body = $body;
    }

    /**
     * @param string $key
     * @param mixed $value
     */
    public function appendValueToBody($key, $value)
    {
        $this->body[$key] = $value;
    }

    /** @return array<string, mixed> the fields of /push */
    public function toArray()
    {
        $fields = (new \ReflectionObject($this))->getProperties(\ReflectionProperty::IS_PUBLIC);
        $request = [];
        foreach ($fields as $field) {
            $request[$field->getName()] = $field->getValue($this);
        }
        $request['body'] = json_encode($this->body, JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE);

        return $request;
    }

    /** @return array<string, mixed> */
    public function jsonSerialize(): array
    {
        return $this->toArray();
    }
}
