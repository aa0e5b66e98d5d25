<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** Some of the subscribers; `cursor` leads to the next page, '' on the last one. */
final class SubscriberPage
{
    /** @param list<Subscriber> $subscribers */
    public function __construct(
        public readonly array $subscribers,
        public readonly string $cursor,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            subscribers: $data->list('subscribers', Subscriber::from(...)),
            cursor: $data->string('cursor'),
        );
    }
}
