<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** A job that take() has taken out of the queue: there is nothing to finish. Times are unix seconds, lengths of time seconds. */
final class TakenJob
{
    /**
     * @param int|null $ttr null = the server is older and does not tell
     * @param list<string> $tags
     * @param list<float>|null $retry its own retry schedule; null = it has none
     * @param float|null $retain how long it is kept after its end; null = not at all
     * @param float|null $expires when nobody needs it any more; null = never
     * @param JobCall|null $call null = it has none
     * @param string|null $traceparent null = it has none
     * @param string|null $idempotencyKey null = it has none
     * @param string|null $group null = it is in none
     */
    public function __construct(
        public readonly string $topic,
        public readonly string $id,
        public readonly string $body,
        public readonly float $due,
        public readonly ?int $ttr = null,
        public readonly array $tags = [],
        public readonly int $priority = 1024,
        public readonly ?array $retry = null,
        public readonly ?float $retain = null,
        public readonly ?float $expires = null,
        public readonly ?JobCall $call = null,
        public readonly ?string $traceparent = null,
        public readonly ?string $idempotencyKey = null,
        public readonly ?string $group = null,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            topic: $data->string('topic'),
            id: $data->string('id'),
            body: $data->string('body'),
            due: $data->float('due'),
            ttr: $data->intOrNull('ttr'),
            tags: $data->has('tags') ? $data->strings('tags') : [],
            priority: $data->int('priority', 1024),
            retry: $data->has('retry') ? $data->floats('retry') : null,
            retain: $data->floatOrNull('retain'),
            expires: $data->floatOrNull('expires'),
            call: $data->has('call') ? JobCall::from($data->object('call')) : null,
            traceparent: $data->stringOrNull('traceparent'),
            idempotencyKey: $data->stringOrNull('idempotency_key'),
            group: $data->stringOrNull('group'),
        );
    }
}
