<?php

declare(strict_types=1);

namespace DelayQueue\Client\Internal;

/**
 * Values of an array of settings, as the files and variables of frameworks have them.
 *
 * @internal to the packages for frameworks
 */
final class Settings
{
    /**
     * The name of a topic.
     *
     * @param array<string, mixed> $settings
     *
     * @throws \InvalidArgumentException if it is no text, such as a list
     */
    public static function topic(array $settings, string $name): string
    {
        $value = $settings[$name] ?? null;

        return is_string($value) && $value !== ''
            ? $value
            : throw new \InvalidArgumentException(
                "$name: must be the name of one topic, such as \"orders\", not " . self::shown($value),
            );
    }

    /**
     * A length of time in seconds: a number, also as a text, or a text such as "1m".
     *
     * @param array<string, mixed> $settings
     *
     * @throws \InvalidArgumentException if it is none
     */
    public static function seconds(array $settings, string $name): int|float
    {
        $value = $settings[$name] ?? null;
        try {
            return match (true) {
                is_numeric($value) => Duration::seconds(+$value),
                is_string($value), $value instanceof \DateInterval => Duration::seconds($value),
                default => throw new \InvalidArgumentException(self::shown($value) . ': must be seconds, or a text like "1m"'),
            };
        } catch (\InvalidArgumentException $error) {
            throw new \InvalidArgumentException("$name: {$error->getMessage()}", 0, $error);
        }
    }

    private static function shown(mixed $value): string
    {
        return is_scalar($value) ? (string) json_encode($value) : get_debug_type($value);
    }
}
