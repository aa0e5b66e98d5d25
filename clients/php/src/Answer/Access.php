<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** What a client may do. */
final class Access
{
    /**
     * @param list<string> $roles such as "produce" and "consume"
     * @param list<string> $topics ["*"] = all
     * @param list<string> $endpoints the paths that its roles may call; [] from earlier versions
     * @param string $user the name of one whom a proxy has logged in; "" = none has
     */
    public function __construct(
        public readonly array $roles,
        public readonly array $topics,
        public readonly array $endpoints,
        public readonly string $user,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            roles: $data->strings('roles'),
            topics: $data->strings('topics'),
            endpoints: $data->has('endpoints') ? $data->strings('endpoints') : [],
            user: $data->string('user', ''),
        );
    }
}
