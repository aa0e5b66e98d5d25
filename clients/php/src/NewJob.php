<?php

declare(strict_types=1);

namespace DelayQueue\Client;

use DelayQueue\Client\Internal\Duration;
use DelayQueue\Client\Internal\Fields;

/** A job for pushMany(). Without `delay` and `due` it is due at once. */
final class NewJob
{
    /**
     * The texts that the server only keeps: the most bytes that each may have.
     *
     * @internal
     */
    public const TEXTS = ['idempotency_key' => 256];

    public readonly string $id;

    /**
     * @param string|array<mixed>|object $body text, or what is sent as JSON
     * @param string|null $id names the job among those of all topics; null = a new one
     * @param int|float|string|\DateInterval $delay seconds, or a text such as "500ms", "15s", "30m", "1.5h", "1d"
     * @param int|float|\DateTimeInterface|null $due when it is due, instead of `delay`; a number is unix seconds
     * @param int|float|string|\DateInterval $ttr how long a worker may take
     * @param list<string> $tags what cancel(), listJobs(), kickTag() and rescheduleTag() ask for
     * @param string|array<mixed>|null $retry delays after failures, such as ["15s", "1m"], then it is buried; or a
     *     preset ("alipay", "wechat"), or a formula: ["max" => 5, "base" => "2s", "factor" => 3, "cap" => "1m"]
     * @param 'replace'|'keep'|'fail'|IfExists|null $ifExists what to do if the id exists; null = replace
     * @param int|float|string|\DateInterval|null $retain how long its record is kept after its end
     * @param int|float|string|\DateInterval|null $expire how long after it was due anybody needs it
     * @param int|null $priority the smaller goes first; null = 1024
     * @param string|array{url: string, method?: 'POST'|'PUT'|'PATCH'|'DELETE'|'GET', headers?: array<string, string>,
     *     timeout?: int|float|string|\DateInterval, expect?: string, give_up?: bool}|null $call a URL, or more, that the
     *     server calls when the job is due; no worker gets the job
     * @param string|null $traceparent W3C trace context, which pop() returns
     * @param string|null $idempotencyKey a push that repeats another one, with the same id and key, changes nothing
     * @param string|null $group the group that it belongs to, such as a customer
     *
     * @throws \InvalidArgumentException if it has both `delay` and `due`
     */
    public function __construct(
        public readonly string $topic,
        public readonly string|array|object $body = '',
        ?string $id = null,
        public readonly int|float|string|\DateInterval $delay = 0,
        public readonly int|float|\DateTimeInterface|null $due = null,
        public readonly int|float|string|\DateInterval $ttr = 60,
        public readonly array $tags = [],
        public readonly string|array|null $retry = null,
        public readonly IfExists|string|null $ifExists = null,
        public readonly int|float|string|\DateInterval|null $retain = null,
        public readonly int|float|string|\DateInterval|null $expire = null,
        public readonly ?int $priority = null,
        #[\SensitiveParameter] public readonly string|array|null $call = null,
        public readonly ?string $traceparent = null,
        public readonly ?string $idempotencyKey = null,
        public readonly ?string $group = null,
    ) {
        if ($due !== null && Duration::delay($delay) != 0) { // as /push does
            throw new \InvalidArgumentException('delay and due exclude each other');
        }
        $this->id = $id ?? self::newId();
    }

    /** A unique id. */
    public static function newId(): string
    {
        return bin2hex(random_bytes(16));
    }

    /**
     * Whether a second push does no harm: one with "fail" would take the job of the first for another's, and one with
     * "*" would be a second job.
     */
    public function isRepeatable(): bool
    {
        return $this->id !== '*' && Fields::value($this->ifExists) !== IfExists::Fail->value;
    }

    /**
     * @internal
     *
     * @return array<string, mixed>
     */
    public function toRequest(): array
    {
        return Fields::given([
            'topic' => $this->topic,
            'id' => $this->id,
            'body' => Fields::body($this->body),
            'ttr' => Duration::seconds($this->ttr),
            'delay' => $this->due === null ? Duration::delay($this->delay) : null,
            'due' => Fields::unix($this->due),
            'tags' => $this->tags === [] ? null : array_values($this->tags),
            'retry' => Fields::retry($this->retry),
            'if_exists' => Fields::value($this->ifExists),
            'retain' => Duration::secondsOrNull($this->retain),
            'expire' => Duration::secondsOrNull($this->expire),
            'priority' => $this->priority,
            'call' => Fields::call($this->call),
            'traceparent' => $this->traceparent,
            'idempotency_key' => $this->idempotencyKey,
            'group' => $this->group,
        ]);
    }
}
