<?php

declare(strict_types=1);

namespace DelayQueue\Exception;

/** The class of a handler does not exist. */
class ClassNotFoundException extends \InvalidArgumentException
{
}
