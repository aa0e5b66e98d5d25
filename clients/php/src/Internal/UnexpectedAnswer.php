<?php

declare(strict_types=1);

namespace DelayQueue\Client\Internal;

/**
 * An answer that has another shape than those of the server: a proxy's, for example.
 *
 * @internal
 */
final class UnexpectedAnswer extends \UnexpectedValueException
{
}
