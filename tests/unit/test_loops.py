"""The loops of the server: one that ends by itself ends the server, with an error."""

import asyncio
import gc
import socket

import pytest

from delayqueue.server.loops import Loop, LoopDied, log_unheard, running


async def returns() -> None:
    return


async def fails() -> None:
    raise LookupError("a defect")


async def is_cancelled() -> None:
    raise asyncio.CancelledError


async def fails_at_its_end() -> None:
    try:
        await asyncio.sleep(3600)
    finally:
        raise LookupError("a defect")


async def lives() -> None:
    await asyncio.sleep(3600)


@pytest.mark.parametrize("dies", [returns, fails, is_cancelled])
async def test_a_loop_that_dies_stops_the_server_with_an_error(dies: Loop) -> None:
    stop = asyncio.Event()
    with pytest.raises(LoopDied, match="timers"):
        async with running({"timers": dies, "other": lives}, stop):
            await asyncio.wait_for(stop.wait(), 30)


async def test_a_loop_that_fails_while_it_ends_is_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(LoopDied, match="timers"):
        async with running({"timers": fails_at_its_end, "other": lives}, asyncio.Event()):
            await asyncio.sleep(0)
    assert caplog.messages == ["timers died"]


async def test_loops_that_are_ended_are_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async with running({"timers": lives}, asyncio.Event()):
        await asyncio.sleep(0)
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("error", "is_said"), [(socket.gaierror(-3, "no name"), False), (ValueError("odd"), True)]
)
async def test_of_connections_that_were_given_up_nothing_is_said(
    caplog: pytest.LogCaptureFixture, error: Exception, is_said: bool
) -> None:
    """While no name server answers, uvloop leaves an error unread for each attempt."""
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log_unheard)
    loop.create_future().set_exception(error)
    gc.collect()
    assert ("never retrieved" in caplog.text) == is_said
