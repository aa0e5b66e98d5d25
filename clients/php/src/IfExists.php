<?php

declare(strict_types=1);

namespace DelayQueue\Client;

/** What to do if the id of a job, or the name of a subscriber or a schedule, already exists. */
enum IfExists: string
{
    case Replace = 'replace';
    case Keep = 'keep';
    case Fail = 'fail';
}
