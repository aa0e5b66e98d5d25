"""Which calls of a Python handler take a slot of their subscriber's `concurrency`."""

import asyncio
import gc
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from delayqueue.delivery.callables import PythonHandlers
from delayqueue.delivery.outcome import Event
from delayqueue.domain.job import Reserved
from delayqueue.domain.subscriber import Subscriber

TIMEOUT_MS: Final = 100
EVENT: Final = Event.of(Reserved("t", "id", "", 1, "receipt", 0, 60_000, None), {})


def one_at_once(handler: Callable[[Event], Any]) -> tuple[PythonHandlers, Subscriber]:
    subscriber = Subscriber(
        name="one", topic="t", handler="m:h", timeout_ms=TIMEOUT_MS, concurrency=1
    )
    return PythonHandlers({"m:h": handler}), subscriber


async def test_one_that_is_async_without_looking_so_keeps_its_place_until_it_ends() -> None:
    began, end, calls = threading.Event(), threading.Event(), list[float]()

    async def stubborn() -> None:
        began.set()
        while not end.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue

    def handler(_job: Event) -> Any:
        calls.append(time.monotonic())
        return stubborn()

    handlers, subscriber = one_at_once(handler)
    while not began.is_set():  # on a busy machine, its time can be over before its first step
        assert (await handlers.call(subscriber, EVENT)).message.startswith("timeout")
    called = len(calls)
    assert (await handlers.call(subscriber, EVENT)).message.startswith("timeout")
    assert len(calls) == called, "the call found a place"
    end.set()
    while not (await handlers.call(subscriber, EVENT)).succeeded:  # on a busy machine
        pass


async def test_one_that_shows_after_its_timeout_that_it_is_async_gives_its_place_back() -> None:
    end = threading.Event()

    async def works() -> None:
        pass

    def handler(_job: Event) -> Any:
        end.wait()
        return works()

    handlers, subscriber = one_at_once(handler)
    assert (await handlers.call(subscriber, EVENT)).message.startswith("timeout")
    end.set()
    while not (await handlers.call(subscriber, EVENT)).succeeded:  # on a busy machine
        pass
    gc.collect()  # the coroutine that was never awaited is closed, so Python does not complain


async def test_one_whose_loop_is_blocked_is_not_run_later_and_the_log_names_the_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    began, end, calls = threading.Event(), threading.Event(), list[str]()

    async def blocks(_: Event) -> None:
        began.set()
        end.wait()

    async def quick(job: Event) -> None:
        calls.append(job.id)

    names = ("blocks", "quick")
    handlers = PythonHandlers({"m:blocks": blocks, "m:quick": quick})
    first, second = (
        Subscriber(name=name, topic="t", handler=f"m:{name}", timeout_ms=100, concurrency=1)
        for name in names
    )
    blocking = asyncio.create_task(handlers.call(first, EVENT))
    await asyncio.to_thread(began.wait)
    assert not (await handlers.call(second, replace(EVENT, id="late"))).called
    assert "quick was not called for 0.1 s: m:blocks blocks the loop" in caplog.text
    end.set()
    await blocking
    while not (await handlers.call(second, EVENT)).succeeded:  # on a busy machine
        pass
    assert "late" not in calls
