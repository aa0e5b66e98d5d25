"""python -m bench.wrappings: what a verb takes inside Redis as a function of a library, and as a script.

The very same Lua, on a Redis of its own (or the one at --url); µs a call, from INFO commandstats: calls one after the
other, one every 10 ms, and pipelined.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from redis import Redis

from bench.processes import free_port, program
from bench.target import SCRIPT_TERMS, redis_command
from delayqueue.store.scripts import ZSET

KEYS: Final = ("{bench}", "{bench}:ready_%s")
PAUSE_S: Final = 0.01
CALLS: Final[dict[str, Sequence[Any]]] = {
    "pop": ("receipt", 1, 0, 1, "none", *SCRIPT_TERMS),  # finds nothing
    "push": ("id", "t", "+86400000", 60_000, 0, 0, "replace", "", "b" * 40, *SCRIPT_TERMS),
}


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.wrappings", description=__doc__)
    parser.add_argument("--url", help="of another server than one of its own")
    parser.add_argument("--calls", type=int, default=3000)
    asked = parser.parse_args()
    if asked.url:
        _measure(Redis.from_url(asked.url), asked.calls)
        return
    port = free_port()
    with tempfile.TemporaryDirectory() as folder, program(redis_command(port), port, Path(folder)):
        _measure(Redis(port=port), asked.calls)


def _measure(redis: Redis, calls: int) -> None:
    redis.function_load(ZSET.library.source, replace=True)
    print("| µs inside Redis | one after the other | every 10 ms | pipelined |")
    print("| --- | --- | --- | --- |")
    for verb, args in CALLS.items():
        sha = redis.script_load(ZSET.script(verb).source)
        for command, name in (("EVALSHA", sha), ("FCALL", ZSET.function(verb))):
            call = (command, name, len(KEYS), *KEYS, *args)
            took = [_us(redis, command, ways) for ways in _ways(redis, call, calls)]
            print(f"| {verb}, {command} | {' | '.join(f'{each:.1f}' for each in took)} |")


def _ways(redis: Any, call: Sequence[Any], calls: int) -> list[Callable[[], None]]:
    def one_by_one() -> None:
        for _ in range(calls):
            redis.execute_command(*call)

    def now_and_then() -> None:
        for _ in range(calls // 10):
            redis.execute_command(*call)
            time.sleep(PAUSE_S)

    def pipelined() -> None:
        pipeline = redis.pipeline(transaction=False)
        for _ in range(calls):
            pipeline.execute_command(*call)
        pipeline.execute()

    return [one_by_one, now_and_then, pipelined]


def _us(redis: Redis, command: str, work: Callable[[], None]) -> float:
    """µs a call, once the first one is over."""
    before = _used(redis, command)
    work()
    after = _used(redis, command)
    return (after[1] - before[1]) / (after[0] - before[0])


def _used(redis: Redis, command: str) -> tuple[int, int]:
    stats: Any = redis.info("commandstats")
    found = stats.get(f"cmdstat_{command.lower()}", {"calls": 0, "usec": 0})
    return found["calls"], found["usec"]


if __name__ == "__main__":
    main()
