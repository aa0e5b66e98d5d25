<?php

declare(strict_types=1);

namespace DelayQueue\Symfony;

use Symfony\Component\Messenger\Stamp\StampInterface;

/**
 * What the server is told of a message beyond its delay.
 *
 * A message with an id replaces an earlier one that waits; with tags, Client::cancel() ends all messages of a tag.
 * Messages of a group, such as a customer's, keep to what the topic says of groups.
 */
final class DelayQueueStamp implements StampInterface
{
    /**
     * @param string|null $id names the message among the jobs of all topics
     * @param list<string> $tags
     * @param int|null $ttr seconds that its handler may take
     * @param int|null $priority the smaller goes first; null = 1024
     * @param string|null $group such as "customer-7"; null = none
     */
    public function __construct(
        public readonly ?string $id = null,
        public readonly array $tags = [],
        public readonly ?int $ttr = null,
        public readonly ?int $priority = null,
        public readonly ?string $group = null,
    ) {
    }
}
