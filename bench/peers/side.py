"""The common part of the programs in Python. It runs beside the peers' packages: standard library only.

A program reads orders, a JSON object a line, from its standard input, and answers each on its standard output.

{"do": "push", "jobs": 100, "batch": 1, "at_once": 50, "from_ms": 0, "to_ms": 0, "due_ms": 0, "rate": 0}
    Push so many jobs, `at_once` requests at a time with `batch` jobs each. They are due at `due_ms` (Unix time), or
    after a random delay. At most `rate` requests a second; 0: as fast as it can. A body is 40 digits, the due time.
    Answer: {} at the end.
{"do": "work", "jobs": 100, "at_once": 50}
    Handle so many jobs. Two answers: {} once the worker waits for jobs, and {"late_ms": [0.1, ...]} at the end: how
    late each job was, the least first.
"""

import asyncio
import json
import random
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, NamedTuple, Protocol

QUEUE: Final = "bench"
BODY_DIGITS: Final = 40

Handle = Callable[[str], None]


class Order(NamedTuple):
    """A job to push: its body, and its delay in seconds."""

    body: str
    delay_s: float


class Side(Protocol):
    """What a program does with its peer's library."""

    async def push(self, orders: Sequence[Order]) -> None: ...

    def working(self, at_once: int, handle: Handle) -> AbstractAsyncContextManager[None]: ...


def play(opened: Callable[[str], AbstractAsyncContextManager[Side]]) -> None:
    """Carry out the orders on the side that is opened at the address of the command line."""
    asyncio.run(_play(opened(sys.argv[1])))


async def _play(opening: AbstractAsyncContextManager[Side]) -> None:
    async with opening as side:
        async for asked in _asked():
            if asked["do"] == "push":
                await _push(side, asked)
                _say({})
            else:
                await _work(side, asked)


async def _asked() -> AsyncIterator[dict[str, Any]]:
    while line := await asyncio.to_thread(sys.stdin.readline):
        yield json.loads(line)


async def _push(side: Side, asked: dict[str, Any]) -> None:
    left, requests = asked["jobs"], 0
    began_s = time.monotonic()

    async def sender() -> None:
        nonlocal left, requests
        while left > 0:
            count = min(asked["batch"], left)
            left -= count
            requests += 1
            if asked["rate"]:
                slot_s = began_s + requests / asked["rate"]
                await asyncio.sleep(max(0.0, slot_s - time.monotonic()))
            await side.push([_order(asked) for _ in range(count)])

    await asyncio.gather(*(sender() for _ in range(asked["at_once"])))


def _order(asked: dict[str, Any]) -> Order:
    now_ms = time.time() * 1000
    due_ms = asked["due_ms"] or now_ms + random.uniform(asked["from_ms"], asked["to_ms"])
    return Order(f"{due_ms:0{BODY_DIGITS}.0f}", max(0.0, due_ms - now_ms) / 1000)


async def _work(side: Side, asked: dict[str, Any]) -> None:
    late_ms: list[float] = []
    ended = asyncio.Event()

    def handle(body: str) -> None:
        late_ms.append(time.time() * 1000 - int(body))
        if len(late_ms) == asked["jobs"]:
            ended.set()

    async with side.working(asked["at_once"], handle):
        _say({})
        await ended.wait()
        _say({"late_ms": sorted(late_ms)})  # before the worker is closed, which takes a while


def _say(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)
