<?php

declare(strict_types=1);

namespace DelayQueue\Client;

/** Stands for a limit that stays as it is, because null lifts one. */
enum Unchanged
{
    case Unchanged;
}
