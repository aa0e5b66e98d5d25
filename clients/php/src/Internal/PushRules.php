<?php

declare(strict_types=1);

namespace DelayQueue\Client\Internal;

use DelayQueue\Client\NewJob;

/**
 * What /push takes: for a job that is kept before it is pushed. What only a server knows is not here: how large a body
 * may be, which calls it makes, what a token may do.
 *
 * Each check takes a field's name and its value, and returns what the server understands.
 *
 * @internal
 */
final class PushRules
{
    public const NEW_ID = '*'; // as an id: asks for a unique one

    private const MAX_SECONDS = 2 ** 31; // of a length of time

    private const MAX_DUE = 10_000_000_000;

    private const PRESETS = ['alipay', 'wechat'];

    private const METHODS = ['POST', 'PUT', 'PATCH', 'DELETE', 'GET'];

    private const WHITE_SPACE = '[\t\n\x{0b}\f\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]';

    private const TRACEPARENT = '/^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/D';

    /** Headers that HTTP itself needs, and those in which the server says what job it is. */
    private const OWN_HEADERS = '/^(?:host|connection|keep-alive|te|trailer|transfer-encoding|content-length|upgrade|expect|'
        . 'traceparent|proxy-.*|webhook-.*|delay-queue-.*)$/Di';

    /**
     * The fields of a push, its names without the white space at their ends.
     *
     * @param array<string, mixed> $request without null
     *
     * @return array<string, mixed>
     *
     * @throws \InvalidArgumentException if /push would refuse a field
     */
    public static function checked(array $request): array
    {
        foreach ($request + ['id' => '', 'topic' => '', 'ttr' => 0] as $field => $value) {
            $request[$field] = match ($field) {
                'id' => self::id($field, $value),
                'topic' => self::pushedTopic($field, $value),
                'delay', 'retain' => self::seconds($field, $value),
                'due' => self::within($field, $value, 0, self::MAX_DUE, 'must be unix seconds (not milliseconds), 0 to ' . self::MAX_DUE),
                'ttr' => self::whole($field, $value, 1, 86_400, 'must be 1 to 86400 seconds'),
                'body' => self::text($field, $value),
                'tags' => self::tags($field, $value),
                'retry' => self::retry($field, $value),
                'if_exists' => self::word($field, $value, ['replace', 'keep', 'fail']),
                'max_wait', 'expire' => self::someSeconds($field, $value),
                'priority' => self::whole($field, $value, 0, 2 ** 32 - 1, 'must be 0 to 4294967295'),
                'group' => self::group($field, $value),
                'call' => self::call($field, $value),
                'traceparent' => self::traceparent($field, $value),
                default => self::kept($field, $value),
            };
        }
        if (isset($request['max_wait']) && ($request['if_exists'] ?? 'replace') !== 'replace') {
            self::refuse('max_wait needs if_exists = replace, the default: a push with keep or fail puts no job off');
        }

        return $request;
    }

    public static function id(string $field, mixed $value): string
    {
        return self::name($field, $value, 1024);
    }

    public static function tag(string $field, mixed $value): string
    {
        return self::name($field, $value, 256);
    }

    public static function group(string $field, mixed $value): string
    {
        return self::name($field, $value, 250);
    }

    public static function topic(string $field, mixed $value): string
    {
        return self::name($field, $value, 256);
    }

    /** A topic that a job can have. */
    public static function pushedTopic(string $field, mixed $value): string
    {
        return str_contains(self::text($field, $value), ',')
            ? self::refuse("$field: no comma, it separates the topics of a pop")
            : self::topic($field, $value);
    }

    private static function name(string $field, mixed $value, int $limitBytes): string
    {
        return self::short($field, self::stripped(self::text($field, $value)), $limitBytes);
    }

    /** A name as the server understands it: without the white space at its ends. */
    public static function stripped(string $name): string
    {
        $space = self::WHITE_SPACE;

        return (string) preg_replace("/^$space+|$space+\$/Du", '', $name);
    }

    private static function short(string $field, string $text, int $limitBytes): string
    {
        return match (true) {
            $text === '' => self::refuse("$field: must not be empty"),
            strlen($text) > $limitBytes => self::refuse("$field: " . strlen($text) . " bytes, at most $limitBytes"),
            default => $text,
        };
    }

    /** A text that the server only keeps. */
    private static function kept(string $field, mixed $value): string
    {
        $limitBytes = NewJob::TEXTS[$field] ?? self::refuse("$field: unknown field");

        return self::short($field, self::text($field, $value), $limitBytes);
    }

    private static function text(string $field, mixed $value): string
    {
        if (!is_string($value)) {
            self::refuse("$field: must be a string");
        }

        return preg_match('//u', $value) === 1 ? $value : self::refuse("$field is not UTF-8");
    }

    /** @return list<string> */
    private static function tags(string $field, mixed $value): array
    {
        $tags = [];
        foreach (self::list($field, $value) as $place => $tag) {
            $tags[] = self::tag("$field.$place", $tag);
        }

        return count($tags) > 64 ? self::refuse("$field: " . count($tags) . ' tags, at most 64') : $tags;
    }

    /** @return list<mixed> */
    private static function list(string $field, mixed $value): array
    {
        return is_array($value) && array_is_list($value) ? $value : self::refuse("$field: must be an array");
    }

    /** @param list<string> $words */
    private static function word(string $field, mixed $value, array $words): string
    {
        $word = self::text($field, $value);

        return in_array($word, $words, true)
            ? $word
            : self::refuse("$field " . self::shown($word) . ': must be one of ' . implode(', ', $words));
    }

    private static function traceparent(string $field, mixed $value): string
    {
        $text = self::text($field, $value);

        return $text === '' || preg_match(self::TRACEPARENT, $text) === 1
            ? $text
            : self::refuse("$field: must be 00-<32 hex>-<16 hex>-<2 hex>, in lower case");
    }

    private static function number(string $field, mixed $value): int|float
    {
        if (!is_int($value) && !is_float($value)) {
            self::refuse("$field: must be a number" . (is_string($value) ? ', without quotes or a unit' : ''));
        }

        return is_finite((float) $value) ? $value : self::refuse("$field: must be a finite number");
    }

    private static function within(string $field, mixed $value, int $least, int $most, string $must): int|float
    {
        $number = self::number($field, $value);

        return $number >= $least && $number <= $most
            ? $number
            : self::refuse("$field " . self::shown($number) . ": $must");
    }

    private static function integer(string $field, mixed $value): int
    {
        return is_int($value) ? $value : self::refuse("$field: must be an integer");
    }

    private static function whole(string $field, mixed $value, int $least, int $most, string $must): int|float
    {
        return self::within($field, self::integer($field, $value), $least, $most, $must);
    }

    private static function seconds(string $field, mixed $value): int|float
    {
        return self::within($field, $value, 0, self::MAX_SECONDS, 'must be 0 to 2^31 seconds');
    }

    private static function someSeconds(string $field, mixed $value): int|float
    {
        $seconds = self::seconds($field, $value);

        return round($seconds * 1000) > 0
            ? $seconds
            : self::refuse("$field " . self::shown($seconds) . ': must be at least 0.001 seconds');
    }

    private static function true(string $field, mixed $value): bool
    {
        return is_bool($value) ? $value : self::refuse("$field: must be true or false");
    }

    /**
     * The members of an object that are not null.
     *
     * @param list<string> $known
     *
     * @return array<string, mixed>
     */
    private static function members(string $field, mixed $value, array $known): array
    {
        $value = is_object($value) ? get_object_vars($value) : $value;
        if (!is_array($value) || ($value !== [] && array_is_list($value))) {
            self::refuse("$field: must be an object");
        }
        $members = [];
        foreach ($value as $name => $member) {
            if ($member !== null) {
                $members[(string) $name] = $member;
            }
        }
        foreach (array_keys($members) as $name) {
            if ($known !== [] && !in_array((string) $name, $known, true)) {
                self::refuse("$field.$name: unknown field; there are $field." . implode(", $field.", $known));
            }
        }

        return $members;
    }

    /** @return array<string, mixed> */
    private static function retry(string $field, mixed $value): array
    {
        $given = self::members($field, $value, ['delays', 'preset', 'max', 'base', 'factor', 'cap', 'jitter']);
        $delays = isset($given['delays']) ? self::list("$field.delays", $given['delays']) : [];
        foreach ($delays as $place => $delay) {
            self::lengthOrText("$field.delays.$place", $delay);
        }
        $preset = self::text("$field.preset", $given['preset'] ?? 'alipay');
        $steps = self::integer("$field.max", $given['max'] ?? 1);
        $base = self::lengthOrText("$field.base", $given['base'] ?? 1);
        $factor = self::number("$field.factor", $given['factor'] ?? 2);
        $cap = self::lengthOrText("$field.cap", $given['cap'] ?? 86_400);
        $jitter = self::number("$field.jitter", $given['jitter'] ?? 0);
        if (count(array_intersect_key($given, ['delays' => 1, 'preset' => 1, 'max' => 1])) !== 1) {
            self::refuse("$field: give one of delays, preset, max");
        }
        foreach (isset($given['max']) ? [] : ['base', 'factor', 'cap', 'jitter'] as $part) {
            if (isset($given[$part])) {
                self::refuse("$field: $part goes with max");
            }
        }
        if (count($delays) > 64) {
            self::refuse("$field: " . count($delays) . ' steps: must be at most 64');
        }
        foreach ([...$delays, $base, $cap] as $length) {
            self::length($field, $length);
        }

        return match (true) {
            !in_array($preset, self::PRESETS, true) => self::refuse("$field: " . self::shown($preset) . ': must be one of '
                . implode(', ', self::PRESETS)),
            $steps < 1 || $steps > 64 => self::refuse("$field: max $steps: must be 1 to 64"),
            $factor < 1 || $factor > 100 => self::refuse("$field: factor " . self::shown($factor) . ': must be 1 to 100'),
            $jitter < 0 || $jitter > 1 => self::refuse("$field: jitter " . self::shown($jitter) . ': must be 0 to 1'),
            default => $given,
        };
    }

    private static function lengthOrText(string $field, mixed $value): int|float|string
    {
        return match (true) {
            is_string($value) => self::text($field, $value),
            is_int($value), is_float($value) => self::number($field, $value),
            default => self::refuse("$field: must be a number or a string"),
        };
    }

    /** A length of time within a schedule: seconds, or a text such as "15s". */
    private static function length(string $field, mixed $value): void
    {
        try {
            $seconds = is_int($value) || is_float($value) || is_string($value) ? Duration::seconds($value) : -1;
        } catch (\InvalidArgumentException) {
            $seconds = -1;
        }
        if ($seconds < 0 || $seconds > self::MAX_SECONDS) {
            $shown = is_int($value) || is_float($value) || is_string($value) ? self::shown($value) : '';
            self::refuse("$field: $shown: must be seconds or a text like \"15s\", \"2m\", \"1h\", 0 to 2^31 s");
        }
    }

    /** @return array<string, mixed> */
    private static function call(string $field, mixed $value): array
    {
        $given = self::members($field, $value, ['url', 'method', 'headers', 'timeout', 'expect', 'give_up']);
        self::url("$field.url", $given['url'] ?? self::refuse("$field.url: must be given"));
        self::word("$field.method", $given['method'] ?? 'POST', self::METHODS);
        self::headers("$field.headers", $given['headers'] ?? []);
        self::timeout("$field.timeout", $given['timeout'] ?? 30);
        self::expected("$field.expect", $given['expect'] ?? '');
        self::true("$field.give_up", $given['give_up'] ?? false);

        return $given;
    }

    private static function url(string $field, mixed $value): void
    {
        $url = self::text($field, $value);
        $parts = [];
        $isUrl = preg_match('~^https?://([^/?]*)~i', $url, $parts) === 1
            && preg_match('/(*UCP)[\s#\x00-\x1f\x7f]/u', $url) === 0
            && preg_match('/^.{1,2048}$/Dsu', $url) === 1;
        $server = $parts[1] ?? '';
        $at = strrpos($server, '@');
        $port = [];
        $host = '~^(?:\[[^\[\]]+\]|[^:\[\]]+)(?::(\d*))?$~D';
        if (!$isUrl || preg_match($host, $at === false ? $server : substr($server, $at + 1), $port) !== 1) {
            self::refuse("$field: must be http[s]://HOST[:PORT][/PATH], at most 2048 characters");
        }
        $number = $port[1] ?? '';
        if ($number !== '' && ((int) $number < 1 || (int) $number > 65535)) {
            self::refuse("$field: must be http[s]://HOST[:PORT][/PATH], at most 2048 characters");
        }
        if ($at !== false) {
            self::refuse("$field: must not have a user and a password: send the header Authorization");
        }
    }

    private static function headers(string $field, mixed $value): void
    {
        $headers = array_map(
            static fn (mixed $each): string => self::text($field, $each),
            self::members($field, $value, []),
        );
        $bytes = strlen(implode('', array_keys($headers)) . implode('', $headers));
        if (count($headers) > 32) {
            self::refuse("$field: must have at most 32 members");
        }
        if ($bytes > 4096) {
            self::refuse("$field: $bytes bytes in all, at most 4096");
        }
        $names = [];
        foreach ($headers as $name => $text) {
            $lower = strtolower((string) $name);
            match (true) {
                preg_match('/^[!#$%&\'*+.^_`|~0-9A-Za-z-]+$/D', $lower) !== 1 || isset($names[$lower])
                    => self::refuse("$field: " . self::shown((string) $name) . " is not a header's name, or is there twice"),
                preg_match(self::OWN_HEADERS, $lower) === 1 => self::refuse("$field: $name is set by the server"),
                preg_match('/^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/D', $text) !== 1
                    => self::refuse("$field: the value of $name must be visible ASCII characters"),
                default => $names[$lower] = true,
            };
        }
    }

    private static function timeout(string $field, mixed $value): void
    {
        $ms = round(self::number($field, $value) * 1000);
        if ($ms < 1 || $ms > 300_000) {
            self::refuse("$field: must be more than 0 and at most 300 seconds");
        }
    }

    private static function expected(string $field, mixed $value): void
    {
        $text = self::text($field, $value);
        if ($text !== '' && preg_match('/^.{1,256}$/Dsu', (string) preg_replace('/(*UCP)^\s+|\s+$/Du', '', $text)) !== 1) {
            self::refuse("$field: must have 1 to 256 characters, as success or *success*");
        }
    }

    /** A value as a message repeats it: the start of a long text is enough to recognise it. */
    private static function shown(int|float|string $value): string
    {
        return match (true) {
            is_float($value) => str_replace('.0e', 'e', sprintf('%.15g', $value)),
            is_int($value) => (string) $value,
            default => "'" . substr($value, 0, 64) . "'",
        };
    }

    private static function refuse(string $message): never
    {
        throw new \InvalidArgumentException($message);
    }
}
