"""The clients that wait for the end of a job, over a store that says what the test wants."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.engine import end_waits
from delayqueue.engine.end_waits import EndWaits
from delayqueue.errors import Unavailable
from delayqueue.store.verbs import AWAIT_END, Verb
from delayqueue.tasks import cancel_all
from tests.waiting import until

OURS = Scope(("ours",))


@pytest.fixture(autouse=True)
def _asks_only_when_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(end_waits, "LOOK_S", 600.0)


class Going:
    """A store with jobs that have still to end, by who asks for them."""

    def __init__(self, *going: tuple[str, Scope]) -> None:
        self.going = {*going}
        self.looks: list[Scope] = []
        self.fails = False

    def run(
        self, verb: Verb[Any, Any], ids: Sequence[str], scope: Scope
    ) -> asyncio.Future[list[Any]]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[Any]] = loop.create_future()
        if self.fails:
            loop.call_soon(answer.set_exception, Unavailable())
        elif verb is AWAIT_END:
            self.looks.append(scope)
            ends = [() if (each, scope) in self.going else (None,) for each in ids]
            loop.call_soon(answer.set_result, ends)
        else:
            loop.call_soon(answer.set_result, [None for _ in ids])
        return answer


@asynccontextmanager
async def waits_on(store: Any) -> AsyncIterator[EndWaits]:
    """The waits; at their end, no callback has failed."""
    failures: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    waits = EndWaits(store, lambda: None)
    task = asyncio.create_task(waits.run())
    try:
        yield waits
    finally:
        await cancel_all([task])
        await waits.close()
    assert (failures, waits._by_id) == ([], {})


async def test_a_job_that_one_client_no_longer_reaches_has_not_ended_for_another() -> None:
    """Its id was pushed again, with another topic."""
    store = Going(("a", OURS), ("a", EVERYWHERE))
    async with waits_on(store) as waits:
        ours, other = waits.wait("a", 30, OURS), waits.wait("a", 30, EVERYWHERE)
        store.going.remove(("a", OURS))
        waits.resync()
        await until(lambda: len(store.looks) >= 4)
        await until(ours.future.done)
        assert not other.future.done()


async def test_a_job_of_that_id_in_another_database_ends_no_wait() -> None:
    """The databases of a store share their channels."""
    store = Going(("a", EVERYWHERE))
    async with waits_on(store) as waits:
        wait = waits.wait("a", 30, EVERYWHERE)
        waits.ended("a")
        for _ in range(100):
            await asyncio.sleep(0)
        assert not wait.future.done()
        store.going.clear()
        waits.ended("a")
        await until(wait.future.done)


async def test_all_who_wait_for_a_job_are_answered_by_one_question() -> None:
    store = Going(("a", EVERYWHERE))
    async with waits_on(store) as waits:
        all_waits = [waits.wait("a", 30, EVERYWHERE) for _ in range(3)]
        await until(lambda: len(store.looks) == 3)
        store.going.clear()
        waits.ended("a")
        await until(lambda: all(wait.future.done() for wait in all_waits))
        assert len(store.looks) == 4


async def test_clients_that_leave_as_a_job_ends_keep_no_other_from_its_end() -> None:
    """Their futures are cancelled a turn before they leave()."""
    store = Going(("a", EVERYWHERE))
    async with waits_on(store) as waits:
        *gone, other = [waits.wait("a", 30, EVERYWHERE) for _ in range(3)]
        await until(lambda: len(store.looks) == 3)
        store.going.clear()
        waits.ended("a")
        for each in gone:
            each.future.cancel()
        await until(other.future.done)
        assert waits.waiting == 0


async def test_a_client_may_leave_while_its_job_is_read() -> None:
    async with waits_on(Going()) as waits:
        await waits.close()
        waits.leave(waits.wait("a", 30, EVERYWHERE))
        for _ in range(10):
            await asyncio.sleep(0)


async def test_a_client_waits_on_if_the_store_fails_when_an_end_is_announced() -> None:
    store = Going(("a", EVERYWHERE))
    async with waits_on(store) as waits:
        wait = waits.wait("a", 30, EVERYWHERE)
        await until(lambda: len(store.looks) == 1)
        store.fails = True
        waits.ended("a")
        for _ in range(100):
            await asyncio.sleep(0)
        assert not wait.future.done()
        store.fails = False
        store.going.clear()
        waits.resync()
        await until(wait.future.done)


async def test_a_wait_fails_if_the_store_does_when_it_begins() -> None:
    store = Going(("a", EVERYWHERE))
    store.fails = True
    async with waits_on(store) as waits:
        wait = waits.wait("a", 3600, EVERYWHERE)
        await until(wait.future.done)
        with pytest.raises(Unavailable):
            wait.future.result()
        assert waits.waiting == 0


async def test_after_a_lost_announcement_the_store_is_asked_once_about_each_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(end_waits, "TOGETHER", 2)
    jobs = "a", "b", "c"
    store = Going(*((each, EVERYWHERE) for each in jobs))
    async with waits_on(store) as waits:
        for each in jobs:
            waits.wait(each, 30, EVERYWHERE)
        waits.resync()
        await until(lambda: len(store.looks) >= 6)
        for _ in range(100):
            await asyncio.sleep(0)
        assert len(store.looks) == 6


async def test_an_end_that_nobody_announced_is_found_in_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(end_waits, "LOOK_S", 0.01)
    store = Going(("a", EVERYWHERE))
    async with waits_on(store) as waits:
        wait = waits.wait("a", 3600, EVERYWHERE)
        await until(lambda: len(store.looks) >= 1)
        store.going.clear()
        await until(wait.future.done)
