<?php

declare(strict_types=1);

namespace DelayQueue\Client\Transport;

use DelayQueue\Client\Exception\TransportException;
use Psr\Http\Client\ClientExceptionInterface;
use Psr\Http\Client\ClientInterface;
use Psr\Http\Message\RequestFactoryInterface;
use Psr\Http\Message\StreamFactoryInterface;

/**
 * Sends requests by a PSR-18 client, such as Guzzle or Symfony's.
 *
 * PSR-18 knows no time limit of a request: set that of the client itself, longer than pop() and get() wait. It must not
 * repeat requests, and cannot end a wait early.
 */
final class Psr18Transport implements Transport
{
    public function __construct(
        private readonly ClientInterface $client,
        private readonly RequestFactoryInterface $requests,
        private readonly StreamFactoryInterface $streams,
    ) {
    }

    public function send(Request $request): Response
    {
        $message = $this->requests->createRequest('POST', $request->url)
            ->withBody($this->streams->createStream($request->body));
        foreach ($request->headers as $name => $value) {
            $message = $message->withHeader($name, $value);
        }
        try {
            $answer = $this->client->sendRequest($message);

            return new Response(
                $answer->getStatusCode(),
                (string) $answer->getBody(),
                $answer->getHeaderLine('Retry-After'),
            );
        } catch (ClientExceptionInterface | \RuntimeException $error) { // the latter: the body breaks off
            throw new TransportException("$request->url: {$error->getMessage()}", 0, $error);
        }
    }
}
