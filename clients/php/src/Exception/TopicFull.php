<?php

declare(strict_types=1);

namespace DelayQueue\Client\Exception;

/** Code 11: the topic has as many jobs as its limit allows. The job was not added; try again when some have ended. */
final class TopicFull extends QueueException
{
}
