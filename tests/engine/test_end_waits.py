"""The clients that wait for the end of a job, over a store that says what the test wants."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.domain.job import State
from delayqueue.engine import end_waits
from delayqueue.engine.end_waits import EndWaits
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

    def run(
        self, verb: Verb[Any, Any], ids: Sequence[str], scope: Scope
    ) -> asyncio.Future[list[Any]]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[Any]] = loop.create_future()
        if verb is AWAIT_END:
            self.looks.append(scope)
            loop.call_soon(answer.set_result, [(each, scope) in self.going for each in ids])
        else:
            views = [
                SimpleNamespace(state=State.DELAYED) if (each, scope) in self.going else None
                for each in ids
            ]
            loop.call_soon(answer.set_result, views)
        return answer


@asynccontextmanager
async def waits_on(store: Any) -> AsyncIterator[EndWaits]:
    waits = EndWaits(store, lambda: None)
    task = asyncio.create_task(waits.run())
    try:
        yield waits
    finally:
        await cancel_all([task])
        await waits.close()


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


async def test_after_a_lost_announcement_the_store_is_asked_once() -> None:
    store = Going(("a", EVERYWHERE))
    async with waits_on(store) as waits:
        waits.wait("a", 30, EVERYWHERE)
        waits.resync()
        await until(lambda: len(store.looks) >= 2)
        for _ in range(100):
            await asyncio.sleep(0)
        assert len(store.looks) == 2
