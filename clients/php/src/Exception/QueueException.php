<?php

declare(strict_types=1);

namespace DelayQueue\Client\Exception;

/** The server has refused a call; getCode() is the answer's code. */
class QueueException extends \RuntimeException implements DelayQueueException
{
    /** @param float $retryAfterSeconds when to try again, if the server says so */
    final public function __construct(string $message, int $code, public readonly float $retryAfterSeconds = 0.0)
    {
        parent::__construct($message, $code);
    }

    /** @internal */
    public static function of(int $code, string $message, float $retryAfterSeconds): self
    {
        $class = match ($code) {
            1 => InvalidRequest::class,
            2 => NoSuchJob::class,
            3 => WrongState::class,
            4 => StaleReceipt::class,
            5 => JobExists::class,
            6 => Unavailable::class,
            7 => Unauthorized::class,
            8 => Forbidden::class,
            9 => TooLarge::class,
            10 => TooManyRequests::class,
            11 => TopicFull::class,
            default => self::class, // of a newer server
        };

        return new $class($message, $code, $retryAfterSeconds);
    }
}
