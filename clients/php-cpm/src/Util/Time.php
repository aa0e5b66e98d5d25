<?php

declare(strict_types=1);

namespace DelayQueue\Util;

/** Lengths of time in seconds, for Job::setDelay() and setTtr(). */
class Time
{
    public const SECOND = 1;
    public const MINUTE = 60;
    public const HOUR = 3600;
    public const DAY = 86400;
    public const WEEK = 604800;
    public const MONTH = 2592000;
}
