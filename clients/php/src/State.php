<?php

declare(strict_types=1);

namespace DelayQueue\Client;

/** The state of a job. */
enum State: string
{
    case Delayed = 'delayed';
    case Ready = 'ready';
    case Reserved = 'reserved';
    case Buried = 'buried';
    case Finished = 'finished';
    case Cancelled = 'cancelled';
    case Expired = 'expired';
    case Dropped = 'dropped';
}
