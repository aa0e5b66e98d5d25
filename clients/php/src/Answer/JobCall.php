<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** The call that the server makes when the job is due. */
final class JobCall
{
    /**
     * @param array<string, string> $headers their names; the values stay in the server
     * @param float $timeout seconds
     * @param string $expect what the answer must be, or contain as in "*success*"; '' = any
     * @param bool $giveUp whether the job is buried at once after a 4xx that another attempt is not going to change
     */
    public function __construct(
        public readonly string $url,
        public readonly string $method,
        public readonly array $headers,
        public readonly float $timeout,
        public readonly string $expect,
        public readonly bool $giveUp,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            url: $data->string('url'),
            method: $data->string('method'),
            headers: $data->textOfEach('headers'),
            timeout: $data->float('timeout'),
            expect: $data->string('expect'),
            giveUp: $data->bool('give_up'),
        );
    }
}
