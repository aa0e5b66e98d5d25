"""python -m bench.history: what the history costs the store, on a Redis of its own.

Bytes of memory of all slots of all rings, each with as many topics as it names and large figures; and µs of the store's
time of a flush of so many topics, and of a look at each ring.
"""

import tempfile
from pathlib import Path
from typing import Any, Final

from redis import Redis

from bench.processes import free_port, program
from bench.target import SCRIPT_TERMS, redis_command
from delayqueue.domain.slots import MOST_TOPICS, RINGS
from delayqueue.store.scripts import ZSET

TAG: Final = "{bench}"
KEYS: Final = (TAG, f"{TAG}:ready_%s")
FLUSHES: Final = 200
FIGURES: Final = "123456,123456,123456,1234,123456,12345678,12345,123456,12345,123,12345,"
RING_ARGS: Final = [part for ring in RINGS.values() for part in ring]


def main() -> None:
    """Print the figures."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder, program(redis_command(port), port, Path(folder)):
        _measure(Redis(port=port))


def _measure(redis: Any) -> None:
    redis.function_load(ZSET.library.source, replace=True)
    rows = [part for row in _rows() for part in row]
    flush = [MOST_TOPICS, len(RINGS), *RING_ARGS, 0, *rows]
    _call(redis, "add_history", flush)
    used = redis.info("memory")["used_memory"]
    for ring in RINGS.values():
        [key] = redis.keys(f"{TAG}:history:{ring.step_ms}:*")
        for place in range(ring.places):
            redis.copy(key, f"{TAG}:history:{ring.step_ms}:other {place}")
    slots = sum(ring.places for ring in RINGS.values())
    print(f"{slots} slots: {(redis.info('memory')['used_memory'] - used) / 1e6:.1f} MB")
    before = _us(redis)
    for _ in range(FLUSHES):
        _call(redis, "add_history", flush)
    print(f"a flush of {MOST_TOPICS} topics: {(_us(redis) - before) / FLUSHES:.0f} us")
    for span, ring in RINGS.items():
        before = _us(redis)
        _call(redis, "history", [*ring, MOST_TOPICS, ring.places - 1, ring.places, "", 1])
        print(f"a look at {span} (mostly empty): {_us(redis) - before:.0f} us")


def _rows() -> list[tuple[str, str]]:
    return [("a", FIGURES), *((f"tsome.topic.{n:03}", FIGURES) for n in range(MOST_TOPICS))]


def _call(redis: Any, verb: str, args: list[Any]) -> None:
    redis.fcall(ZSET.function(verb), len(KEYS), *KEYS, *args, *SCRIPT_TERMS)


def _us(redis: Any) -> int:
    """Time in functions until now."""
    return int(redis.info("commandstats")["cmdstat_fcall"]["usec"])


if __name__ == "__main__":
    main()
