<?php

declare(strict_types=1);

namespace DelayQueue\Client\Internal;

/**
 * Lengths of time, in seconds as the server takes them.
 *
 * @internal
 */
final class Duration
{
    private const UNITS = ['ms' => 0.001, 's' => 1, 'm' => 60, 'h' => 3600, 'd' => 86400];

    private const LONG_SECONDS = 366 * 86400; // the server takes a longer delay for a mistake, as a unix time would be

    /**
     * A whole number is returned as an int, because the server refuses a ttr of 60.0. An interval begins at $now, in its
     * time zone; without it now, where each day has 24 hours.
     *
     * @throws \InvalidArgumentException if a text is not a length of time
     */
    public static function seconds(int|float|string|\DateInterval $length, ?\DateTimeInterface $now = null): int|float
    {
        $seconds = match (true) {
            is_string($length) => self::parse($length),
            $length instanceof \DateInterval => self::ofInterval($length, $now ?? new \DateTimeImmutable('now', new \DateTimeZone('UTC'))),
            default => $length,
        };

        return is_float($seconds) && floor($seconds) === $seconds && abs($seconds) < PHP_INT_MAX
            ? (int) $seconds
            : $seconds;
    }

    /** A time from now, in the program's time zone: an interval that ends in the past, such as `$now->diff($due)`, is 0. */
    public static function delay(int|float|string|\DateInterval $delay): int|float
    {
        return $delay instanceof \DateInterval ? self::until($delay) : self::seconds($delay);
    }

    /**
     * A delay that somebody gave to a framework, as it is.
     *
     * @return int|float|numeric-string|\DateInterval|\DateTimeInterface|null
     *
     * @throws \InvalidArgumentException if a cast would make other seconds of it: "2026-12-01 10:00" is 2026 of them
     */
    public static function number(mixed $delay): mixed
    {
        if (is_numeric($delay) || $delay === null || $delay instanceof \DateInterval || $delay instanceof \DateTimeInterface) {
            return $delay;
        }
        $given = is_string($delay) ? "\"$delay\"" : get_debug_type($delay);

        throw new \InvalidArgumentException("delay $given: must be a number of seconds, or a DateInterval or DateTime if the framework takes one");
    }

    /**
     * Seconds until a delay is over that somebody gave to a framework; 0 if it is. Up to a DateTime, they are whole
     * milliseconds, rounded up: a job may be late by less than one, but not early.
     *
     * @throws \InvalidArgumentException as number() does
     */
    public static function until(mixed $delay, \DateTimeInterface $now = new \DateTimeImmutable()): int|float
    {
        $delay = self::number($delay);
        $seconds = match (true) {
            $delay instanceof \DateTimeInterface => ceil(((int) $delay->format('Uu') - (int) $now->format('Uu')) / 1000) / 1000,
            $delay instanceof \DateInterval => $delay,
            default => (float) $delay, // "60"
        };

        return max(0, self::seconds($seconds, $now));
    }

    /**
     * The delay that somebody gave to a framework as an argument of push(): `due` for a DateTime or an interval that is
     * over in more than a year.
     *
     * @return array{delay: int|float}|array{due: float}
     *
     * @throws \InvalidArgumentException as number() does
     */
    public static function argument(mixed $delay, \DateTimeInterface $now = new \DateTimeImmutable()): array
    {
        $seconds = self::until($delay, $now);

        return is_object($delay) && $seconds > self::LONG_SECONDS
            ? ['due' => (float) $now->format('U.u') + $seconds]
            : ['delay' => $seconds];
    }

    public static function delayOrNull(int|float|string|\DateInterval|null $delay): int|float|null
    {
        return $delay === null ? null : self::delay($delay);
    }

    public static function secondsOrNull(int|float|string|\DateInterval|null $length): int|float|null
    {
        return $length === null ? null : self::seconds($length);
    }

    /** One that may be negative, such as "-1h". */
    public static function distance(int|float|string|\DateInterval $by): int|float
    {
        if (is_string($by) && str_starts_with($by, '-')) {
            return -self::seconds(substr($by, 1));
        }

        return self::seconds(is_string($by) && str_starts_with($by, '+') ? substr($by, 1) : $by);
    }

    private static function parse(string $text): float
    {
        if (preg_match('/^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/D', trim($text), $parts) !== 1) {
            throw new \InvalidArgumentException("\"$text\": must be a text like \"500ms\", \"15s\", \"30m\", \"1.5h\", \"1d\"");
        }

        return round((float) $parts[1] * self::UNITS[$parts[2]], 3);
    }

    /** The days between two times are known; a month without them is the one that begins now. */
    private static function ofInterval(\DateInterval $interval, \DateTimeInterface $now): float
    {
        if ($interval->days !== false) {
            $seconds = (($interval->days * 24 + $interval->h) * 60 + $interval->i) * 60 + $interval->s + $interval->f;

            return $interval->invert === 1 ? -$seconds : $seconds;
        }
        $end = \DateTimeImmutable::createFromInterface($now)->add($interval);

        return ((int) $end->format('Uu') - (int) $now->format('Uu')) / 1e6;
    }
}
