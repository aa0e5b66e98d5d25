<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** A schedule and its next occurrence. Either `cron` is '' or `every` null. */
final class Schedule
{
    /**
     * @param float|null $next null = never again
     * @param bool $declared whether it is from a config file
     * @param JobCall|null $call of its jobs, null = they have none
     * @param string|null $group of its jobs, null = they are in none
     */
    public function __construct(
        public readonly string $name,
        public readonly string $topic,
        public readonly string $cron,
        public readonly ?float $every,
        public readonly string $tz,
        public readonly string $body,
        public readonly int $ttr,
        public readonly string $catchUp,
        public readonly bool $paused,
        public readonly ?float $next,
        public readonly bool $declared,
        public readonly ?JobCall $call = null,
        public readonly ?string $group = null,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            name: $data->string('name'),
            topic: $data->string('topic'),
            cron: $data->string('cron'),
            every: $data->floatOrNull('every'),
            tz: $data->string('tz'),
            body: $data->string('body'),
            ttr: $data->int('ttr'),
            catchUp: $data->string('catch_up'),
            paused: $data->bool('paused', false),
            next: $data->floatOrNull('next'),
            declared: $data->bool('declared'),
            call: $data->has('call') ? JobCall::from($data->object('call')) : null,
            group: $data->stringOrNull('group'),
        );
    }
}
