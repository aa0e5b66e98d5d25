<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** A page of groups of dead letters, the largest first; `cursor` leads to the next page, '' on the last one. */
final class DeadLetters
{
    /** @param list<DeadLetterGroup> $groups */
    public function __construct(
        public readonly array $groups,
        public readonly string $cursor,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            groups: $data->list('groups', DeadLetterGroup::from(...)),
            cursor: $data->string('cursor'),
        );
    }
}
