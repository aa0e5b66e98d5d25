<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;
use DelayQueue\Client\State;

/** All about a job. Times are unix seconds, lengths of time seconds. */
final class JobDetails
{
    /**
     * @param int $delay its due time in whole seconds, as in the original; use `due`
     * @param list<string> $tags
     * @param list<Attempt> $attempts
     * @param list<SubscriberResult> $results
     * @param JobCall|null $call null = it has none
     * @param string|null $worker the name of the worker that has it; null = none, or one that did not tell its name
     * @param Progress|null $progress how far the last attempt is, or was when it failed; null = its worker has not told it
     * @param list<float>|null $retry with `options`: its own retry schedule; null = it has none
     * @param float|null $retain with `options`: how long it is kept after its end; null = not at all
     * @param float|null $expires with `options`: when nobody needs it any more; null = never
     * @param string|null $group null = it is in none
     * @param HeldBy|null $heldBy while it is ready and its group may have no more jobs in hand; null = nothing holds it up
     */
    public function __construct(
        public readonly string $topic,
        public readonly string $id,
        public readonly int $delay,
        public readonly int $ttr,
        public readonly string $body,
        public readonly State $state,
        public readonly int $attempt,
        public readonly array $tags,
        public readonly int $priority,
        public readonly string $message,
        public readonly float $created,
        public readonly float $due,
        public readonly ?float $started,
        public readonly ?float $ended,
        public readonly array $attempts,
        public readonly array $results,
        public readonly ?JobCall $call,
        public readonly ?string $worker,
        public readonly ?array $retry,
        public readonly ?float $retain,
        public readonly ?float $expires,
        public readonly ?Progress $progress,
        public readonly ?string $group = null,
        public readonly ?HeldBy $heldBy = null,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            topic: $data->string('topic'),
            id: $data->string('id'),
            delay: $data->int('delay', 0),
            ttr: $data->int('ttr'),
            body: $data->string('body'),
            state: $data->state('state'),
            attempt: $data->int('attempt'),
            tags: $data->strings('tags'),
            priority: $data->int('priority', 1024),
            message: $data->string('message'),
            created: $data->float('created'),
            due: $data->float('due'),
            started: $data->floatOrNull('started'),
            ended: $data->floatOrNull('ended'),
            attempts: $data->list('attempts', Attempt::from(...)),
            results: $data->list('results', SubscriberResult::from(...)),
            call: $data->has('call') ? JobCall::from($data->object('call')) : null,
            worker: $data->stringOrNull('worker'),
            retry: $data->has('retry') ? $data->floats('retry') : null,
            retain: $data->floatOrNull('retain'),
            expires: $data->floatOrNull('expires'),
            group: $data->stringOrNull('group'),
            heldBy: $data->has('held_by') ? HeldBy::from($data->object('held_by')) : null,
            progress: $data->has('progress') ? Progress::from($data->object('progress')) : null,
        );
    }
}
