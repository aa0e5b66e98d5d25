<?php

declare(strict_types=1);

namespace DelayQueue\Client\Internal;

use DelayQueue\Client\Job;

/**
 * The fields of requests.
 *
 * @internal
 */
final class Fields
{
    private const JSON = JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES;

    private const MAX_MESSAGE_BYTES = 4096; // the server keeps 1024 characters

    /**
     * The fields that are not null: the server has the defaults of the others.
     *
     * @param array<string, mixed> $fields
     *
     * @return array<string, mixed>
     */
    public static function given(array $fields): array
    {
        return array_filter($fields, static fn (mixed $value): bool => $value !== null);
    }

    /**
     * @param string|array<mixed>|object $body
     *
     * @throws \InvalidArgumentException if it cannot be sent
     */
    public static function body(string|array|object $body): string
    {
        if (!is_string($body)) {
            return self::json($body, 'the body', JSON_PRESERVE_ZERO_FRACTION);
        }

        return preg_match('//u', $body) === 1
            ? $body
            : throw new \InvalidArgumentException('the body is not UTF-8: encode it, such as by base64_encode()');
    }

    /** @throws \InvalidArgumentException if `what` cannot be JSON */
    public static function json(mixed $value, string $what, int $flags = 0): string
    {
        try {
            return json_encode($value, self::JSON | $flags);
        } catch (\JsonException $error) {
            $place = $error->getCode() === JSON_ERROR_UTF8 ? self::noUtf8($value) : null;
            $why = $place === null ? " cannot be JSON: {$error->getMessage()}" : ": $place is not UTF-8: encode it, such as by base64_encode()";
            throw new \InvalidArgumentException($what . $why, 0, $error);
        }
    }

    /** Where the first text is that is not UTF-8, such as "tags.0"; null = there is none in arrays and plain objects. */
    private static function noUtf8(mixed $value, string $place = ''): ?string
    {
        if (is_string($value)) {
            return preg_match('//u', $value) === 1 ? null : $place;
        }
        foreach (is_array($value) || $value instanceof \stdClass ? (array) $value : [] as $name => $one) {
            if (preg_match('//u', (string) $name) !== 1) {
                return 'a name in ' . ($place === '' ? 'it' : $place);
            }
            $found = self::noUtf8($one, $place === '' ? (string) $name : "$place.$name");
            if ($found !== null) {
                return $found;
            }
        }

        return null;
    }

    /** A message as the server takes it: whatever a handler says, in GBK too, must not stop the report of a job's end. */
    public static function message(string $message): ?string
    {
        $json = json_encode(substr($message, 0, self::MAX_MESSAGE_BYTES), JSON_INVALID_UTF8_SUBSTITUTE);
        $clean = json_decode((string) $json);

        return is_string($clean) && $clean !== '' ? $clean : null;
    }

    public static function unix(int|float|\DateTimeInterface|null $moment): int|float|null
    {
        return $moment instanceof \DateTimeInterface ? (float) $moment->format('U.u') : $moment;
    }

    /** @return array<string, int|float|null> the fields of a range of due times */
    public static function range(
        int|float|\DateTimeInterface|null $start,
        int|float|\DateTimeInterface|null $end,
        int|float|\DateTimeInterface|null $after,
        int|float|\DateTimeInterface|null $before,
    ): array {
        return [
            'start' => self::unix($start),
            'end' => self::unix($end),
            'after' => self::unix($after),
            'before' => self::unix($before),
        ];
    }

    public static function value(\BackedEnum|string|null $value): int|string|null
    {
        return $value instanceof \BackedEnum ? $value->value : $value;
    }

    /**
     * @param string|array<mixed>|null $retry a preset, a list of delays, or a formula
     *
     * @return array<mixed>|null
     */
    public static function retry(string|array|null $retry): ?array
    {
        return match (true) {
            $retry === null => null,
            is_string($retry) => ['preset' => $retry],
            default => self::inSeconds(array_is_list($retry) ? ['delays' => $retry] : $retry),
        };
    }

    /**
     * @param array<mixed> $values of which some are lengths of time, or arrays of these
     *
     * @return array<mixed>
     */
    private static function inSeconds(array $values): array
    {
        return array_map(static fn (mixed $value): mixed => match (true) {
            $value instanceof \DateInterval => Duration::seconds($value),
            is_array($value) => self::inSeconds($value),
            default => $value,
        }, $values);
    }

    /**
     * @param string|array{url: string, method?: string, headers?: array<string, string>,
     *     timeout?: int|float|string|\DateInterval, expect?: string, give_up?: bool}|null $call a URL, or more
     *
     * @return array<string, mixed>|null
     */
    public static function call(#[\SensitiveParameter] string|array|null $call): ?array
    {
        return match (true) {
            $call === null => null,
            is_string($call) => ['url' => $call],
            default => self::given(array_replace($call, [
                'headers' => self::headers(self::named($call['headers'] ?? null)),
                'timeout' => Duration::secondsOrNull($call['timeout'] ?? null),
            ])),
        };
    }

    /** @return array<string, string>|null */
    private static function named(#[\SensitiveParameter] mixed $headers): ?array
    {
        if ($headers !== null && (!is_array($headers) || ($headers !== [] && array_is_list($headers)))) {
            throw new \InvalidArgumentException('headers of a call: must be an array by name, such as ["X-Key" => "abc"]');
        }

        return $headers;
    }

    /** @param array<string, string>|null $headers */
    public static function headers(#[\SensitiveParameter] ?array $headers): ?object
    {
        return $headers === null ? null : (object) $headers; // [] would be a JSON array
    }

    /** @return array{id: string, receipt?: string} */
    public static function held(Job|string $job): array
    {
        return is_string($job) ? ['id' => $job] : ['id' => $job->id, 'receipt' => $job->receipt];
    }
}
