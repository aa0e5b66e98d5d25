"""Waits for a condition instead of a guessed time."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, Self

POLL_S: Final = 0.01
LONGEST_POLL_S: Final = 0.25
PATIENCE_S: Final = 60.0  # a busy machine takes its time


class Turns:
    """Counts how often other tasks get a turn while the block runs."""

    count = 0

    async def __aenter__(self) -> Self:
        self._counting = asyncio.create_task(self._take())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._counting.cancel()

    async def _take(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.count += 1


def wait_until(condition: Callable[[], bool], *, within_s: float = PATIENCE_S) -> None:
    """Wait until `condition()` is true, without a loop. Raises AssertionError after `within_s` seconds."""
    since = time.monotonic()
    while not condition():
        assert time.monotonic() - since < within_s, f"not within {within_s} s"
        time.sleep(2 * POLL_S)


async def until(condition: Callable[[], bool], *, within_s: float = PATIENCE_S) -> None:
    """Wait until `condition()` is true. Raises AssertionError after `within_s` seconds."""

    async def holds() -> bool:
        return condition()

    await until_async(holds, within_s=within_s)


async def until_async(
    condition: Callable[[], Awaitable[bool]], *, within_s: float = PATIENCE_S
) -> None:
    """Wait until `await condition()` is true. Raises AssertionError after `within_s` seconds."""
    since = time.monotonic()
    while not await condition():
        waited_s = time.monotonic() - since
        assert waited_s < within_s, f"not within {within_s} s"
        # the longer it took, the less often: to ask a server takes its processor time
        await asyncio.sleep(min(max(POLL_S, waited_s / 20), LONGEST_POLL_S))
