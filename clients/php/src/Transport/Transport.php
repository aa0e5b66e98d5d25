<?php

declare(strict_types=1);

namespace DelayQueue\Client\Transport;

use DelayQueue\Client\Exception\TransportException;

/** Sends HTTP requests. The client decides which are repeated, so a transport must send each of them once. */
interface Transport
{
    /** @throws TransportException if no complete answer came */
    public function send(Request $request): Response;
}
