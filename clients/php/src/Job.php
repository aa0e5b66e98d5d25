<?php

declare(strict_types=1);

namespace DelayQueue\Client;

use DelayQueue\Client\Exception\BadBody;
use DelayQueue\Client\Internal\Data;
use DelayQueue\Client\Worker\HandlerResult;

/** A job that pop() has reserved. Its receipt makes sure that a worker that was too slow changes nothing. */
final class Job
{
    /**
     * @param int $attempt how often it has been handed out, counted from 1
     * @param float $due when it was to be delivered, in unix seconds
     * @param string $traceparent W3C trace context; '' if it was pushed without one
     * @param list<string> $tags
     * @param array<string, HandlerResult> $results of the handlers before, by their names, where a worker's topic has several
     * @param string $group '' if it is in none
     * @param \Closure(?float, string): void|null $tell what progress() calls; null = nobody is told
     */
    public function __construct(
        public readonly string $topic,
        public readonly string $id,
        public readonly string $body,
        public readonly int $attempt,
        public readonly string $receipt,
        public readonly float $due,
        public readonly string $traceparent = '',
        public readonly array $tags = [],
        public readonly array $results = [],
        public readonly string $group = '',
        private readonly ?\Closure $tell = null,
    ) {
    }

    /**
     * The job with these results of handlers.
     *
     * @param array<string, HandlerResult> $results
     */
    public function withResults(array $results): self
    {
        return new self(...['results' => $results] + get_object_vars($this));
    }

    /**
     * The job with what its progress is told to.
     *
     * @internal
     *
     * @param \Closure(?float, string): void $tell
     */
    public function withProgress(\Closure $tell): self
    {
        return new self(...['tell' => $tell] + get_object_vars($this));
    }

    /**
     * Says how far this attempt is, for the page and get(): the worker tells the server, twice a second at most.
     *
     * It never fails. Without a worker it does nothing: call touch() of the client.
     *
     * @param int|float|null $percent 0 to 100; null = as before
     * @param string $message what it is at
     */
    public function progress(int|float|null $percent, string $message = ''): void
    {
        if ($this->tell !== null) {
            ($this->tell)($percent === null ? null : (float) $percent, $message);
        }
    }

    /**
     * The body, if it is a JSON object or array. A whole number beyond PHP's integers is a text of its digits.
     *
     * @return array<mixed>
     *
     * @throws BadBody if it is not; a worker buries the job then, because the next attempt would read the same
     */
    public function json(): array
    {
        try {
            $data = json_decode($this->body, true, flags: JSON_THROW_ON_ERROR | JSON_BIGINT_AS_STRING);
        } catch (\JsonException $error) {
            throw new BadBody("the body is not JSON: {$error->getMessage()}", 0, $error);
        }

        return is_array($data) ? $data : throw new BadBody('the body is JSON, but neither an object nor an array');
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            topic: $data->string('topic'),
            id: $data->string('id'),
            body: $data->string('body'),
            attempt: $data->int('attempt'),
            receipt: $data->string('receipt'),
            due: $data->float('due'),
            traceparent: $data->string('traceparent', ''),
            tags: $data->has('tags') ? $data->strings('tags') : [],
            group: $data->string('group', ''),
        );
    }
}
