<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** What happened to one job of many. */
final class Outcome
{
    /**
     * @param string $id '' if the job had none that could be one
     * @param int $code 0 = done; others as in QueueException
     * @param float|null $due of rescheduleMany(): when it is due now
     */
    public function __construct(
        public readonly string $id,
        public readonly int $code,
        public readonly string $message = '',
        public readonly ?float $due = null,
    ) {
    }

    public function succeeded(): bool
    {
        return $this->code === 0;
    }

    /** @internal */
    public static function from(Data $data): self
    {
        $id = $data->value('id');

        return new self(is_string($id) ? $id : '', $data->int('code'), $data->string('message', ''), $data->floatOrNull('due'));
    }
}
