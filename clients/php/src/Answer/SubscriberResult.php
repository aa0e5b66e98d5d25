<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** A subscriber's result for a job. */
final class SubscriberResult
{
    /**
     * @param string $status "succeeded" or "failed"
     * @param float|null $due when it is called again; null = it is not
     */
    public function __construct(
        public readonly string $subscriber,
        public readonly string $status,
        public readonly int $attempts,
        public readonly float $started,
        public readonly float $ended,
        public readonly ?float $due,
        public readonly string $message,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            subscriber: $data->string('subscriber'),
            status: $data->string('status'),
            attempts: $data->int('attempts'),
            started: $data->float('started'),
            ended: $data->float('ended'),
            due: $data->floatOrNull('due'),
            message: $data->string('message'),
        );
    }
}
