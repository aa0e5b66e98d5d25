<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** A job that take() has taken out of the queue: there is nothing to finish. */
final class TakenJob
{
    public function __construct(
        public readonly string $topic,
        public readonly string $id,
        public readonly string $body,
        public readonly float $due,
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
        );
    }
}
