<?php

declare(strict_types=1);

namespace DelayQueue\Client\Worker;

/** A handler throws it to bury the job: another attempt would not help. */
final class Bury extends \RuntimeException
{
}
