<?php

declare(strict_types=1);

namespace DelayQueue\Client\Internal;

/**
 * The ttr of jobs with a time limit, at which a framework kills the worker.
 *
 * @internal to the packages for frameworks
 */
final class Ttr
{
    private const MARGIN = 30; // seconds: as between the frameworks' default limit, 60, and the connections' default ttr, 90

    private const MOST = 86_400;

    /**
     * That of the connection, or a longer one if the job's own limit needs it: the job would run twice at a time.
     *
     * @param int $ttr seconds, of the connection
     * @param mixed $limit seconds, in the job's payload, a number or a text with one; null = it has none
     */
    public static function of(int $ttr, mixed $limit): int
    {
        return is_numeric($limit) ? max($ttr, (int) min(self::MOST, ceil(+$limit) + self::MARGIN)) : $ttr;
    }
}
