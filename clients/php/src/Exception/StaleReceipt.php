<?php

declare(strict_types=1);

namespace DelayQueue\Client\Exception;

/** Code 4: the reservation is over. Stop working on the job: another worker may have it. */
final class StaleReceipt extends QueueException
{
}
