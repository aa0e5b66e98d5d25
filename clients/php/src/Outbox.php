<?php

declare(strict_types=1);

namespace DelayQueue\Client;

use DelayQueue\Client\Internal\Fields;
use DelayQueue\Client\Internal\PushRules;

/**
 * Jobs that are committed with your data: rows of the outbox, a table that `delay-queue relay` moves to the server.
 *
 * Each method inserts one row, in the transaction of your connection. Nothing is committed here.
 */
final class Outbox
{
    public const TABLE = 'delay_queue_outbox';

    private const COLUMNS = ['id', 'topic', 'body', 'delay', 'due']; // of a job; its other fields are `options`

    /**
     * @param \PDO|\Closure(string, list<mixed>): mixed $connection a connection, or what executes a statement with values
     *     for its question marks, such as `DB::insert(...)` of Laravel
     */
    public function __construct(
        private readonly \PDO|\Closure $connection,
        private readonly string $table = self::TABLE,
    ) {
    }

    /**
     * Pushes the job when the transaction commits. Its `delay` counts from now. Returns its id, a new one for "*".
     *
     * @throws \InvalidArgumentException if /push would refuse a field; nothing is inserted then
     */
    public function push(NewJob $job): string
    {
        if ($job->idempotencyKey !== null) {
            throw new \InvalidArgumentException('idempotencyKey: the relay gives each row one of its own');
        }
        $request = PushRules::checked($job->toRequest());
        $id = PushRules::id('id', $request['id']);
        $id = $id === PushRules::NEW_ID ? NewJob::newId($job->group) : $id;
        $request['id'] = $id;
        $columns = array_flip(self::COLUMNS);
        $options = Fields::json(array_diff_key($request, $columns), 'a field of the job');
        $this->insert(array_intersect_key($request, $columns) + ['options' => $options]);

        return $id;
    }

    /**
     * Ends the job when the transaction commits, in any state; it need not exist.
     *
     * @throws \InvalidArgumentException if no job can have this id; nothing is inserted then
     */
    public function cancel(string $id): void
    {
        $id = PushRules::id('id', $id);
        if ($id === PushRules::NEW_ID) {
            throw new \InvalidArgumentException("id: $id names no job to cancel");
        }
        $this->insert(['id' => $id, 'cancel' => '1']); // a text, because PostgreSQL takes no number for a BOOLEAN
    }

    /**
     * Ends the jobs of the tag when the transaction commits, in one topic or in all.
     *
     * @throws \InvalidArgumentException if no job can have this tag or topic; nothing is inserted then
     */
    public function cancelTag(string $tag, ?string $topic = null): void
    {
        $tag = PushRules::tag('tag', $tag);
        $topic = $topic === null ? null : PushRules::topic('topic', $topic);
        $this->insert(Fields::given(['cancel_tag' => $tag, 'topic' => $topic]));
    }

    /** @param array<string, mixed> $row */
    private function insert(array $row): void
    {
        $names = implode(', ', array_keys($row));
        $marks = implode(', ', array_fill(0, count($row), '?'));
        $sql = "INSERT INTO $this->table ($names) VALUES ($marks)";
        $done = $this->connection instanceof \PDO
            ? self::execute($this->connection, $sql, array_values($row))
            : ($this->connection)($sql, array_values($row));
        if ($done === false) { // of a connection that throws nothing: the transaction must not commit without the row
            throw new \RuntimeException("$this->table: the row was not inserted");
        }
    }

    /** @param list<mixed> $values */
    private static function execute(\PDO $connection, string $sql, array $values): bool
    {
        $statement = $connection->prepare($sql);

        return $statement !== false && $statement->execute($values);
    }
}
