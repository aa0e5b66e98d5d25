<?php

declare(strict_types=1);

namespace DelayQueue\Client\Internal;

use DelayQueue\Client\Call;
use DelayQueue\Client\Exception\Interrupted;
use DelayQueue\Client\Exception\TransportException;
use DelayQueue\Client\Transport\Response;

/**
 * Which calls are made again, and when.
 *
 * @internal
 */
final class Retries
{
    private const FIRST_PAUSE_SECONDS = 0.1; // before the first retry; four times as long before each further one

    private const LONGEST_PAUSE_SECONDS = 10.0; // that a server may ask for; beyond it, the caller decides

    private const MOST_ASKED_SECONDS = 60.0; // a server asks for seconds: a day is the mistake of something in between

    private const EARLY_SECONDS = 0.5; // an empty poll that should last longer, but is answered before this, has not waited

    private const EARLY_PAUSE_SECONDS = 1.0;

    private const AWAY = [502, 503, 504]; // the store is, or the server before which a proxy stands

    /** How long to wait before the call is made again; null = it is not. */
    public static function pauseAfter(Call $call, Response|TransportException $outcome, int $number): ?float
    {
        if (self::isRefused($outcome)) { // safe for any call: nothing was done
            $asked = self::askedSeconds($outcome);

            return $asked <= self::LONGEST_PAUSE_SECONDS ? $asked : null;
        }
        $hasFailed = $outcome instanceof TransportException || self::isAway($outcome);

        return $hasFailed && $call->repeatable && !$outcome instanceof Interrupted
            ? self::FIRST_PAUSE_SECONDS * 4 ** $number
            : null;
    }

    /** The pause after a poll that brought nothing although it has not waited: a loop over pop() would spin. */
    public static function pauseAfterEmpty(Call $call, mixed $result, float $tookSeconds): ?float
    {
        $dueSeconds = $call->waitSeconds === null ? self::EARLY_SECONDS : min(self::EARLY_SECONDS, $call->waitSeconds / 2);

        return $call->polls && $tookSeconds < $dueSeconds && ($result === null || $result === [])
            ? self::EARLY_PAUSE_SECONDS
            : null;
    }

    /** @phpstan-assert-if-true =Response $outcome */
    public static function isRefused(Response|TransportException $outcome): bool
    {
        return $outcome instanceof Response && $outcome->status === 429;
    }

    public static function isAway(Response $outcome): bool
    {
        return in_array($outcome->status, self::AWAY, true);
    }

    public static function askedSeconds(Response $answer): float
    {
        return ctype_digit($answer->retryAfter)
            ? min((float) $answer->retryAfter, self::MOST_ASKED_SECONDS)
            : self::FIRST_PAUSE_SECONDS;
    }
}
