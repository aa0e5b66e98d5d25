<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** A webhook for the jobs of a topic. */
final class Subscriber
{
    /**
     * @param list<float> $retry
     * @param bool $declared whether it is from a config file
     * @param float|null $paused since when, in unix seconds; null = not paused
     * @param CallCounts|null $calls only if asked for
     * @param array<string, string> $headers their names; the values stay in the server
     */
    public function __construct(
        public readonly string $name,
        public readonly string $topic,
        public readonly int $order,
        public readonly string $url,
        public readonly string $handler,
        public readonly float $timeout,
        public readonly array $retry,
        public readonly int $concurrency,
        public readonly bool $signed,
        public readonly bool $declared,
        public readonly string $expect,
        public readonly string $onFailure,
        public readonly string $payload,
        public readonly ?float $paused,
        public readonly ?CallCounts $calls,
        public readonly string $method = 'POST',
        public readonly array $headers = [],
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            name: $data->string('name'),
            topic: $data->string('topic'),
            order: $data->int('order'),
            url: $data->string('url'),
            handler: $data->string('handler', ''),
            timeout: $data->float('timeout'),
            retry: $data->floats('retry'),
            concurrency: $data->int('concurrency'),
            signed: $data->bool('signed'),
            declared: $data->bool('declared'),
            expect: $data->string('expect', ''),
            onFailure: $data->string('on_failure', 'bury'),
            payload: $data->string('payload', 'body'),
            paused: $data->floatOrNull('paused'),
            calls: $data->has('calls') ? CallCounts::from($data->object('calls')) : null,
            method: $data->string('method', 'POST'),
            headers: $data->has('headers') ? $data->textOfEach('headers') : [],
        );
    }
}
