"""What a process has seen of the workers that told their names."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from delayqueue.domain.job import Reserved
from delayqueue.domain.worker_identity import WorkerIdentity
from delayqueue.engine import workers as engine
from delayqueue.engine.workers import SeenWorker, Workers
from delayqueue.store.verbs import Ending, Holding, NotHeld

WAIT_S = 30.0
DEADLINE_MS = 90_000
NOBODY: Any = None  # instead of a store, which none of this asks


class Store:
    """What a process tells it and asks it about workers."""

    def __init__(self) -> None:
        self.registry = self
        self.result: int | NotHeld = DEADLINE_MS  # of every job
        self.asked: list[str] = []  # ids of jobs
        self.told: list[dict[str, Any]] = []

    async def run(
        self, _verb: object, items: Sequence[Holding], _scope: object
    ) -> Sequence[int | NotHeld]:
        self.asked += [item.id for item in items]
        return [self.result] * len(items)

    async def heartbeat(self, _kind: str, _name: str, written: str, _silence_ms: int) -> None:
        self.told = json.loads(written)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
async def workers(store: Any, monkeypatch: pytest.MonkeyPatch) -> Workers:
    """Those of a process that looks at jobs, and tells of workers, when a test says so."""
    monkeypatch.setattr(engine, "SETTLED_S", 0)
    return Workers(store, "this")


async def look_and_tell(workers: Workers) -> None:
    await workers.look()
    await workers.tell()


def job(number: int, attempt: int = 1) -> Reserved:
    return Reserved("t", f"j{number}", b"", attempt, "r" * attempt, 0, 60_000, None)


def ending(number: int, nonce: str | None = "r") -> Ending:
    return Ending(f"j{number}", nonce, "")


def polling(workers: Workers, name: str = "w") -> SeenWorker:
    seen = workers.note_poll(WorkerIdentity(name), ("t",), WAIT_S, "10.0.0.7")
    assert seen is not None
    return seen


async def test_a_poll_shows_that_a_worker_is_there_until_it_is_answered() -> None:
    workers = Workers(NOBODY, "this")
    seen = polling(workers)
    assert seen.last_s(seen.seen_s + 20) == seen.seen_s + 20
    assert seen.last_s(seen.seen_s + 40) == seen.seen_s + WAIT_S
    workers.note_taken(seen, [job(1)])
    assert seen.last_s(seen.seen_s + 20) == seen.seen_s


async def test_one_is_gone_from_a_broken_poll_to_the_next_sign_of_it() -> None:
    workers = Workers(NOBODY, "this")
    seen = polling(workers)
    workers.note_taken(seen, [job(1), job(2)])
    polling(workers)
    workers.note_left(seen, [job(2)])
    assert seen.gone
    assert seen.last_s(seen.seen_s + 20) == seen.seen_s
    assert list(workers.in_hand) == [("j1", "r")]
    assert workers.note_finished([ending(2), ending(1), ending(1, None)], [3, 0, 0]) == [3, 0, 0]
    assert (seen.gone, seen.finished, workers.in_hand) == (False, 1, {})


async def test_there_are_no_more_than_are_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST_WORKERS", 2)
    monkeypatch.setattr(engine, "MOST_IN_HAND", 3)
    workers = Workers(NOBODY, "this")
    polling(workers, "a")
    seen = polling(workers, "b")
    assert workers.note_poll(WorkerIdentity("c"), ("t",), WAIT_S, "") is None
    workers.note_taken(seen, map(job, range(9)))
    assert list(workers.in_hand) == [("j0", "r"), ("j1", "r"), ("j2", "r")]


@pytest.mark.parametrize("ended", [NotHeld.ENDED, NotHeld.GIVEN_BACK])
async def test_the_end_of_a_job_is_counted_once_whoever_heard_of_it(
    store: Store, workers: Workers, monkeypatch: pytest.MonkeyPatch, ended: NotHeld
) -> None:
    monkeypatch.setattr(
        engine, "LOOK_SHARE", 0
    )  # each look asks, however long the test has stalled
    seen = polling(workers)
    workers.note_taken(seen, [job(1), job(2)])
    await look_and_tell(workers)
    assert (store.told[0]["in_hand"], store.told[0]["until"]) == (2, DEADLINE_MS)
    workers.note_finished([ending(1)], [0])
    workers.note_finished([ending(1)], [0])  # a client that got no answer repeats it
    store.asked, store.result = [], ended
    await look_and_tell(workers)
    # the finished one, too, so that the store forgets who had it
    assert store.asked == ["j1", "j2"]
    assert workers.in_hand == {}
    assert (store.told[0]["finished"], store.told[0]["failed"]) == (
        (2, 0) if ended is NotHeld.ENDED else (1, 1)
    )


@pytest.mark.parametrize("heard", [True, False], ids=["was released here", "came again"])
@pytest.mark.parametrize("settled_s", [0, 60])
async def test_an_attempt_that_failed_has_not_finished_although_the_next_one_did(
    store: Store,
    workers: Workers,
    monkeypatch: pytest.MonkeyPatch,
    heard: bool,
    settled_s: float,
) -> None:
    monkeypatch.setattr(engine, "SETTLED_S", settled_s)
    seen = polling(workers)
    workers.note_taken(seen, [job(1)])
    if heard:
        workers.note_given_back("j1", "r")
    workers.note_taken(seen, [job(1, attempt=2)])
    workers.note_finished([ending(1, "rr")], [0])
    store.result = NotHeld.ENDED  # before anybody has looked
    await look_and_tell(workers)
    assert (store.told[0]["finished"], store.told[0]["failed"]) == (1, 1)
    assert workers.in_hand == {}


async def test_a_job_is_looked_at_less_often_the_longer_it_takes(
    store: Store, workers: Workers
) -> None:
    workers.note_taken(polling(workers), [job(1)])
    (held,) = workers.in_hand.values()
    held.since_s -= 600
    await look_and_tell(workers)
    await look_and_tell(workers)
    assert store.asked == ["j1"]
    assert 50 < held.look_s - held.since_s - 600 < 70


async def test_a_full_table_keeps_those_that_wait_or_work(
    store: Store, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "MOST_WORKERS", 3)
    polling(workers, "waits")
    workers.note_taken(polling(workers, "works"), [job(1)])
    workers.note_taken(polling(workers, "an invented name"), [])
    assert workers.note_poll(WorkerIdentity("comes"), ("t",), WAIT_S, "") is None
    await look_and_tell(workers)
    assert [told["name"] for told in store.told] == ["waits", "works"]
    polling(workers, "comes")


async def test_what_is_told_has_a_limit(store: Store, workers: Workers) -> None:
    topics = tuple(f"{number:02}".ljust(256, "x") for number in range(64))
    for number in range(100):
        workers.note_poll(WorkerIdentity(f"w{number}"), topics, WAIT_S, "")
    await look_and_tell(workers)
    assert 0 < len(store.told) < 100
    assert len(json.dumps(store.told)) < engine.MOST_CHARS * 1.1
