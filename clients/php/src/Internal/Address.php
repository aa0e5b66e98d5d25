<?php

declare(strict_types=1);

namespace DelayQueue\Client\Internal;

/**
 * The server's URL, and the headers of every request.
 *
 * @internal
 */
final class Address
{
    private const DEFAULT_URL = 'http://127.0.0.1:9277';

    /** @param array<string, string> $headers */
    private function __construct(public readonly string $url, public readonly array $headers)
    {
    }

    /**
     * What is null, or a URL that is empty, comes from the variables DELAYQUEUE_URL and DELAYQUEUE_TOKEN.
     *
     * @throws \InvalidArgumentException if the URL or the token cannot be one
     */
    public static function of(#[\SensitiveParameter] ?string $url, #[\SensitiveParameter] ?string $token): self
    {
        $source = 'URL ';
        if ($url === null || $url === '') {
            $source = 'DELAYQUEUE_URL=';
            $url = self::variable('DELAYQUEUE_URL') ?? self::DEFAULT_URL;
        }
        $shown = $source . preg_replace('~//.*@~s', '//***@', $url); // without a password
        $parts = parse_url($url);
        if (!isset($parts['scheme'], $parts['host']) || !in_array($parts['scheme'], ['http', 'https'], true)) {
            throw new \InvalidArgumentException("$shown: must be http://HOST:PORT or https://HOST:PORT");
        }
        if (strpbrk($url, '?#') !== false) {
            throw new \InvalidArgumentException("$shown: must be http://HOST:PORT or https://HOST:PORT, without ? and #");
        }
        $source = $token === null ? 'DELAYQUEUE_TOKEN' : 'the token';
        $token ??= self::variable('DELAYQUEUE_TOKEN') ?? '';
        if (preg_match('/[^\x21-\x7e]/', $token) === 1) {
            throw new \InvalidArgumentException("$source: must be printable ASCII");
        }
        if ($token !== '' && isset($parts['user'])) {
            throw new \InvalidArgumentException(
                "$shown: it has a password, and there is a token, which takes its place: "
                . 'give one of them (a token may come from DELAYQUEUE_TOKEN)',
            );
        }
        $headers = ['Content-Type' => 'application/json', 'Accept-Language' => 'en'];

        return new self(rtrim($url, '/'), $token === '' ? $headers : $headers + ['Authorization' => "Bearer $token"]);
    }

    private static function variable(string $name): ?string
    {
        // of the process, or of a .env that a framework has read
        foreach ([$_ENV[$name] ?? null, $_SERVER[$name] ?? null, getenv($name)] as $value) {
            if (is_string($value) && $value !== '') {
                return $value;
            }
        }

        return null;
    }
}
