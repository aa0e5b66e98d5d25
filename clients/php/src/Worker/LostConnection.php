<?php

declare(strict_types=1);

namespace DelayQueue\Client\Worker;

/**
 * Whether a handler failed because a connection that it had kept is gone: every further job would fail, too.
 *
 * Drivers of databases have no code for it that they share, so their messages tell.
 *
 * @internal
 */
final class LostConnection
{
    private const MESSAGES = [
        'server has gone away', // MySQL, after wait_timeout
        'Lost connection to MySQL server',
        'Packets out of order',
        'disconnected by the server because of inactivity',
        'server closed the connection unexpectedly', // PostgreSQL
        'terminating connection due to',
        'no connection to the server',
        'SSL connection has been closed unexpectedly',
        'SSL: Broken pipe',
        'packet. PID=', // PHP's mysqlnd: "Error while sending QUERY packet. PID=7"
        "Error reading result set's header",
        'read error on connection', // Redis
        'Redis server went away',
    ];

    public static function isCauseOf(?\Throwable $error): bool
    {
        for (; $error !== null; $error = $error->getPrevious()) {
            foreach (self::MESSAGES as $message) {
                if (stripos($error->getMessage(), $message) !== false) {
                    return true;
                }
            }
        }

        return false;
    }
}
