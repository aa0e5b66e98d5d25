<?php

declare(strict_types=1);

namespace DelayQueue\Client\Internal;

use DelayQueue\Client\State;

/**
 * An object of an answer. Members that only a newer server knows are ignored.
 *
 * @internal
 */
final class Data
{
    /** @param array<mixed> $members */
    private function __construct(private readonly array $members)
    {
    }

    /** @throws UnexpectedAnswer if it is not an object */
    public static function of(mixed $data): self
    {
        return new self(is_array($data) ? $data : throw new UnexpectedAnswer('an object was expected'));
    }

    /**
     * The objects of an answer that is a list.
     *
     * @template T
     *
     * @param callable(self): T $read
     *
     * @return list<T>
     *
     * @throws UnexpectedAnswer if it is not a list of objects
     */
    public static function each(mixed $data, callable $read): array
    {
        if (!is_array($data) || !array_is_list($data)) {
            throw new UnexpectedAnswer('a list was expected');
        }

        return array_map(static fn (mixed $one): mixed => $read(self::of($one)), $data);
    }

    public function has(string $name): bool
    {
        return isset($this->members[$name]);
    }

    public function value(string $name): mixed
    {
        return array_key_exists($name, $this->members)
            ? $this->members[$name]
            : throw new UnexpectedAnswer("$name is missing");
    }

    /** @param string|null $default of a member that not every answer has */
    public function string(string $name, ?string $default = null): string
    {
        $value = $this->members[$name] ?? $default;

        return is_string($value) ? $value : throw self::unexpected($name);
    }

    public function stringOrNull(string $name): ?string
    {
        return $this->has($name) ? $this->string($name) : null;
    }

    public function int(string $name, ?int $default = null): int
    {
        $value = $this->members[$name] ?? $default;

        return is_int($value) ? $value : throw self::unexpected($name);
    }

    public function intOrNull(string $name): ?int
    {
        return $this->has($name) ? $this->int($name) : null;
    }

    public function float(string $name): float
    {
        $value = $this->members[$name] ?? null;

        return is_float($value) || is_int($value) ? (float) $value : throw self::unexpected($name);
    }

    public function floatOrNull(string $name): ?float
    {
        return $this->has($name) ? $this->float($name) : null;
    }

    public function bool(string $name, ?bool $default = null): bool
    {
        $value = $this->members[$name] ?? $default;

        return is_bool($value) ? $value : throw self::unexpected($name);
    }

    public function boolOrFloat(string $name): bool|float
    {
        return is_bool($this->members[$name] ?? null) ? $this->bool($name) : $this->float($name);
    }

    public function state(string $name): State
    {
        return State::tryFrom($this->string($name)) ?? throw self::unexpected($name);
    }

    public function object(string $name): self
    {
        return self::of($this->value($name));
    }

    /**
     * @template T
     *
     * @param callable(self): T $read
     *
     * @return list<T>
     */
    public function list(string $name, callable $read): array
    {
        return self::each($this->value($name), $read);
    }

    /** @return list<string> */
    public function strings(string $name): array
    {
        return array_map(
            static fn (mixed $each): string => is_string($each) ? $each : throw self::unexpected($name),
            $this->values($name),
        );
    }

    /** @return list<float> */
    public function floats(string $name): array
    {
        return array_map(static fn (?float $each): float => $each ?? throw self::unexpected($name), $this->figures($name));
    }

    /** @return list<float|null> */
    public function figures(string $name): array
    {
        return array_map(static fn (mixed $each): ?float => match (true) {
            $each === null => null,
            is_int($each), is_float($each) => (float) $each,
            default => throw self::unexpected($name),
        }, $this->values($name));
    }

    /** @return list<int|null> */
    public function counts(string $name): array
    {
        return array_map(
            static fn (mixed $each): ?int => $each === null || is_int($each) ? $each : throw self::unexpected($name),
            $this->values($name),
        );
    }

    /** @return list<int> */
    public function ints(string $name): array
    {
        return array_map(static fn (?int $each): int => $each ?? throw self::unexpected($name), $this->counts($name));
    }

    /** @return array<string, int> */
    public function countOfEach(string $name): array
    {
        $counts = [];
        foreach ($this->members($name) as $key => $count) {
            $counts[(string) $key] = is_int($count) ? $count : throw self::unexpected($name);
        }

        return $counts;
    }

    /** @return array<int, int> PHP makes integers of names such as "60" */
    public function countOfEachNumber(string $name): array
    {
        $counts = [];
        foreach ($this->countOfEach($name) as $number => $count) {
            $counts[(int) $number] = $count;
        }

        return $counts;
    }

    /** @return array<string, string> */
    public function textOfEach(string $name): array
    {
        $texts = [];
        foreach ($this->has($name) ? $this->members($name) : [] as $key => $text) {
            $texts[(string) $key] = is_string($text) ? $text : throw self::unexpected($name);
        }

        return $texts;
    }

    /** @return array<mixed> */
    private function members(string $name): array
    {
        $value = $this->value($name);

        return is_array($value) ? $value : throw self::unexpected($name);
    }

    /** @return list<mixed> */
    private function values(string $name): array
    {
        $values = $this->members($name);

        return array_is_list($values) ? $values : throw self::unexpected($name);
    }

    private static function unexpected(string $name): UnexpectedAnswer
    {
        return new UnexpectedAnswer("$name is missing, or of another type");
    }
}
