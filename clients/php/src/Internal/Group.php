<?php

declare(strict_types=1);

namespace DelayQueue\Client\Internal;

/**
 * The group of jobs whose classes were written for other queues: a text, or a number, such as a customer's.
 *
 * @internal to the packages for frameworks
 */
final class Group
{
    /**
     * @param string $class of the job
     * @param mixed $group null = none
     *
     * @throws \InvalidArgumentException if it is neither a text nor a number
     */
    public static function of(string $class, mixed $group): ?string
    {
        return match (true) {
            $group === null => null,
            $group instanceof \BackedEnum => (string) $group->value,
            is_string($group), is_int($group), $group instanceof \Stringable => (string) $group,
            default => throw new \InvalidArgumentException(
                "the group of $class is " . get_debug_type($group) . ': must be a text such as "customer-7", or null',
            ),
        };
    }
}
