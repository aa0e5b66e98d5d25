"""Python handlers that do what no handler should."""

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

from delayqueue.domain.job import Reserved

HUGE = 10_000_000


class Timeout(BaseException):
    """Like gevent's: it is not an Exception."""


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise KeyboardInterrupt


class Unspeakable:
    def __str__(self) -> str:
        raise Timeout


def raises_no_exception(job: Reserved) -> NoReturn:
    raise Timeout(f"late with {job.id}")


def interrupts(_: Reserved) -> NoReturn:
    raise KeyboardInterrupt


def exits(_: Reserved) -> NoReturn:
    raise SystemExit(0)


def is_cancelled(_: Reserved) -> NoReturn:
    raise asyncio.CancelledError


def stops_iterating(_: Reserved) -> NoReturn:
    raise StopIteration


def names_a_file(_: Reserved) -> NoReturn:
    raise OSError(b"caf\xe9".decode("utf-8", "surrogateescape"))


def is_unspeakable(_: Reserved) -> NoReturn:
    raise UnspeakableError


def shouts(_: Reserved) -> NoReturn:
    raise ValueError("A" * HUGE)


def sleeps(_: Reserved) -> None:
    time.sleep(3600)


async def async_raises_no_exception(job: Reserved) -> None:
    raises_no_exception(job)


async def async_interrupts(job: Reserved) -> None:
    interrupts(job)


async def async_exits(job: Reserved) -> None:
    exits(job)


async def async_is_cancelled(job: Reserved) -> None:
    is_cancelled(job)


async def async_cancels_itself(_: Reserved) -> None:
    task = asyncio.current_task()
    assert task
    task.cancel()
    await asyncio.sleep(3600)


async def async_stops_iterating(_: Reserved) -> None:
    raise StopAsyncIteration


async def async_does_not_stop(_: Reserved) -> None:
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue


async def async_sleeps(_: Reserved) -> None:
    time.sleep(0.5)  # noqa: ASYNC251  # it blocks the loop


async def async_blocks(job: Reserved) -> None:
    blocks(Path(job.body))


def blocks(path: Path) -> None:
    """Make a file, and go on until somebody removes it."""
    path.touch()
    while path.exists():
        time.sleep(0.01)


async def async_is_quick(_: Reserved) -> str:
    return "done"


async def async_sleeps_in_a_thread(_: Reserved) -> None:
    await asyncio.to_thread(time.sleep, 3600)


def sleeps_in_an_executor(_: Reserved) -> None:
    ThreadPoolExecutor().submit(time.sleep, 3600).result()


async def async_stops_the_loop(_: Reserved) -> None:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0.01)
    raise LookupError("all the same")


async def async_leaves_a_task(job: Reserved) -> None:
    task = asyncio.create_task(async_interrupts(job))
    await asyncio.sleep(0.01)
    raise LookupError(f"task done: {task.done()}")


async def async_breaks_the_loop(_: Reserved) -> None:
    loop = asyncio.get_running_loop()
    os.close(loop._selector.fileno())  # type: ignore[attr-defined]
    await asyncio.sleep(3600)


def returns_a_generator(_: Reserved) -> object:
    return (time.monotonic() for _ in range(3))


def returns_a_function(_: Reserved) -> object:
    return time.sleep


async def async_forgets_an_await(job: Reserved) -> object:
    return async_sleeps(job)


def returns_a_file_name(_: Reserved) -> str:
    return b"caf\xe9".decode("utf-8", "surrogateescape")


def returns_much(_: Reserved) -> str:
    return "B" * HUGE


def returns_the_unspeakable(_: Reserved) -> Unspeakable:
    return Unspeakable()


def is_async_in_disguise(job: Reserved) -> object:
    async def work() -> str:
        await asyncio.sleep(0.01)
        return f"waited for {job.id}"

    return work()
