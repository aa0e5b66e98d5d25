<?php

declare(strict_types=1);

namespace DelayQueue\Client\Internal;

/**
 * The tags of jobs whose classes were written for other queues: what these take is taken as far as the server takes it.
 *
 * @internal to the packages for frameworks
 */
final class Tags
{
    private const MOST = 64;

    private const MOST_BYTES = 256;

    /** @var array<string, true> the classes of which a warning has told */
    private static array $told = [];

    /**
     * The texts and numbers of a list, each once. The rest is left out, of which one warning tells for each class.
     *
     * @param string $class whose tags() returned them
     * @param mixed $tags null = none
     * @param callable(string): mixed $warn
     * @param list<string> $taken what comes before them
     *
     * @return list<string>
     *
     * @throws \InvalidArgumentException if they are no list
     */
    public static function of(string $class, mixed $tags, callable $warn, array $taken = []): array
    {
        if (!is_iterable($tags ?? [])) {
            throw new \InvalidArgumentException(
                "$class::tags() returned " . get_debug_type($tags) . ': must be a list such as ["order:1001"]',
            );
        }
        $reasons = [];
        foreach ($tags ?? [] as $tag) {
            $text = self::text($tag);
            if ($text === null) {
                $reasons[get_debug_type($tag) . ' is no tag'] = true;
                continue;
            }
            if (in_array($text, $taken, true)) {
                continue;
            }
            $reason = match (true) {
                $text === '' => 'one is empty',
                strlen($text) > self::MOST_BYTES => 'one has more than ' . self::MOST_BYTES . ' bytes',
                preg_match('//u', $text) !== 1 => 'one is not UTF-8',
                count($taken) >= self::MOST => 'there are more than ' . self::MOST,
                default => null,
            };
            if ($reason === null) {
                $taken[] = $text;
            } else {
                $reasons[$reason] = true;
            }
        }
        if ($reasons !== [] && !isset(self::$told[$class])) {
            self::$told[$class] = true;
            $warn("delay-queue: some tags of $class were left out, and cancel() will not find the job by them: "
                . implode(', ', array_keys($reasons)));
        }

        return $taken;
    }

    private static function text(mixed $tag): ?string
    {
        return match (true) {
            $tag instanceof \BackedEnum => (string) $tag->value,
            is_string($tag), is_int($tag), is_float($tag), $tag instanceof \Stringable => trim((string) $tag),
            default => null,
        };
    }
}
