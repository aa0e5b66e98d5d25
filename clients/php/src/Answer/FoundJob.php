<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;
use DelayQueue\Client\State;

/** A job that was found; get() returns all about it. */
final class FoundJob
{
    /**
     * @param string|null $group null = it is in none
     * @param HeldBy|null $heldBy as in JobDetails
     */
    public function __construct(
        public readonly string $id,
        public readonly string $topic,
        public readonly State $state,
        public readonly float $due,
        public readonly ?string $group = null,
        public readonly ?HeldBy $heldBy = null,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            id: $data->string('id'),
            topic: $data->string('topic'),
            state: $data->state('state'),
            due: $data->float('due'),
            group: $data->stringOrNull('group'),
            heldBy: $data->has('held_by') ? HeldBy::from($data->object('held_by')) : null,
        );
    }
}
