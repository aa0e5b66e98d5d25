"""Waiting polls: no lost wake-up, first come first served, no job reserved for nobody."""

import asyncio
import gc
import time
from collections.abc import Sequence

import pytest

from delayqueue.domain.job import Reserved
from delayqueue.engine.bucket_poller import RETRY_S, SLOW_S
from delayqueue.engine.polls import LOOK_S, Polls
from delayqueue.engine.wait_queue import Poll
from delayqueue.errors import TooMany, Unavailable
from delayqueue.store.types import Change, Demand, Popped
from tests.engine.shelves import Shelf, Shelves
from tests.waiting import until

LONG_S = 30.0
SOON_S = 20.0  # before a poll gives up after LONG_S; a machine may pause for seconds
QUIET_TURNS = 20


def polls_on(shelves: Shelves, max_polls: int = 0) -> Polls:
    """Polls on this store. They are told of jobs that are given back."""
    every_poll = Polls(shelves, max_polls)
    shelves.on_ready(every_poll.matcher.notify)
    return every_poll


@pytest.fixture(params=[1, 3], ids=["1-bucket", "3-buckets"])
async def store(request: pytest.FixtureRequest) -> Shelves:
    return Shelves(request.param)


@pytest.fixture
async def every_poll(store: Shelves) -> Polls:
    return polls_on(store)


def poll(
    every_poll: Polls, *topics: str, wanted: int = 1, wait_s: float = LONG_S
) -> asyncio.Task[list[Reserved]]:
    return asyncio.create_task(every_poll.pop(topics or ("t",), wanted, wait_s))


def ids(jobs: list[Reserved]) -> list[str]:
    return [job.id for job in jobs]


def arrive(store: Shelves, every_poll: Polls, *job_ids: str, topic: str = "t") -> None:
    """Jobs become ready, and this process is told."""
    store.put(topic, *job_ids)
    for job_id in job_ids:
        every_poll.matcher.notify(store.buckets.of(job_id), topic, 1)


def resync(every_poll: Polls, store: Shelves) -> None:
    for bucket in range(store.buckets.count):
        every_poll.matcher.resync(bucket)


async def settled(every_poll: Polls, store: Shelves, waiting: int) -> None:
    """Wait until this many polls wait and every bucket has said that it has nothing."""
    await until(lambda: every_poll.waiting == waiting)
    quiet = 0  # turns of the loop; between an answer and the next call there are fewer
    while quiet < QUIET_TURNS:
        calls = len(store.calls)
        await asyncio.sleep(0)
        quiet = quiet + 1 if (len(store.calls), store.in_flight) == (calls, 0) else 0


async def test_a_poll_takes_what_is_ready_at_once(store: Shelves, every_poll: Polls) -> None:
    store.put("t", "a")
    assert ids(await poll(every_poll, wait_s=0)) == ["a"]


async def test_a_waiting_poll_is_woken_by_a_job(store: Shelves, every_poll: Polls) -> None:
    waiting = poll(every_poll)
    await settled(every_poll, store, waiting=1)
    arrive(store, every_poll, "a")
    assert ids(await waiting) == ["a"]
    assert every_poll.waiting == 0


async def test_a_wait_ends_with_nothing_at_its_time(store: Shelves, every_poll: Polls) -> None:
    assert await poll(every_poll, wait_s=0.02) == []
    assert every_poll.waiting == 0


@pytest.mark.parametrize("wait_s", [1e-9, 0.0001, 0.01])
async def test_a_ready_job_is_found_however_short_the_wait_is(
    store: Shelves, every_poll: Polls, wait_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delayqueue.engine.polls.LOOK_S", SOON_S)
    store.put("t", "a")
    store.is_open.clear()
    short = poll(every_poll, wait_s=wait_s)
    await asyncio.sleep(wait_s + 0.005)
    assert not short.done()
    store.is_open.set()
    assert ids(await short) == ["a"]
    assert not any(verb == "requeue" for verb, _ in store.calls)


async def test_a_short_wait_for_nothing_ends_though_a_bucket_hangs() -> None:
    store = Shelves(2)
    every_poll = polls_on(store)
    store.hung = {1}
    began = time.monotonic()
    assert await asyncio.wait_for(poll(every_poll, wait_s=0.01), SOON_S) == []
    assert time.monotonic() - began >= LOOK_S - 0.01
    assert every_poll.waiting == 0


async def test_a_short_wait_for_nothing_ends_in_time_though_a_bucket_is_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("delayqueue.engine.polls.LOOK_S", 2 * SOON_S)
    store = Shelves(2)
    every_poll = polls_on(store)
    store.down = {1}
    assert await asyncio.wait_for(poll(every_poll, wait_s=0.1), SOON_S) == []


async def test_a_job_that_comes_while_the_answer_is_on_its_way_is_not_missed(
    store: Shelves, every_poll: Polls
) -> None:
    for number in range(200):
        store.is_open.clear()
        waiting = poll(every_poll)
        await until(lambda: every_poll.waiting == 1)
        for _ in range(number % 7):
            await asyncio.sleep(0)
        store.is_open.set()
        for _ in range(number % 5):
            await asyncio.sleep(0)
        arrive(store, every_poll, f"job-{number}")
        assert ids(await asyncio.wait_for(waiting, SOON_S)) == [f"job-{number}"]


@pytest.mark.parametrize("steps", range(12))
async def test_a_cancelled_poll_gives_its_job_back(
    store: Shelves, every_poll: Polls, steps: int
) -> None:
    gone = poll(every_poll)
    await settled(every_poll, store, waiting=1)
    arrive(store, every_poll, "a")
    for _ in range(steps):
        await asyncio.sleep(0)
    gone.cancel()
    took = await asyncio.gather(gone, return_exceptions=True)
    if isinstance(took[0], asyncio.CancelledError):
        assert ids(await asyncio.wait_for(poll(every_poll), SOON_S)) == ["a"]
    else:
        assert ids(took[0]) == ["a"]  # type: ignore[arg-type]
    assert every_poll.waiting == 0


async def test_fresh_polls_hear_that_the_store_is_down(store: Shelves, every_poll: Polls) -> None:
    store.down.update(range(store.buckets.count))
    for wait_s in (0, LONG_S):
        with pytest.raises(Unavailable):
            await poll(every_poll, wait_s=wait_s)
    assert every_poll.waiting == 0


async def test_a_bucket_that_hangs_does_not_keep_polls_from_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = Shelves(3)
    every_poll = polls_on(store)
    stuck, *others = store.id_in(0), store.id_in(1), store.id_in(2)
    store.hung = {0}
    for other in others:
        waiting = poll(every_poll)
        await until(lambda: every_poll.waiting == 1)
        arrive(store, every_poll, other)
        assert ids(await asyncio.wait_for(waiting, SOON_S)) == [other]
        # the first poll had to find out that the bucket hangs
        monkeypatch.setattr("delayqueue.engine.bucket_poller.SLOW_S", 2 * SOON_S)
    arrive(store, every_poll, stuck)
    store.hung.clear()
    # what came for polls that were served already is there for the next one
    assert ids(await asyncio.wait_for(poll(every_poll), SOON_S)) == [stuck]


async def test_a_call_that_hangs_soon_after_another_call_does_not_keep_its_poll_either() -> None:
    store = Shelves(2)
    every_poll = polls_on(store)
    store.put("t", store.id_in(0, "quick"))
    assert len(await poll(every_poll)) == 1
    await asyncio.sleep(SLOW_S / 2)
    store.hung = {0}
    store.put("t", other := store.id_in(1))
    assert ids(await asyncio.wait_for(poll(every_poll), SOON_S)) == [other]
    assert ("pop", 0) in store.calls[1:], "it was asked first"


async def test_a_bucket_that_fails_is_asked_again_after_a_pause() -> None:
    store = Shelves(2)
    every_poll = polls_on(store)
    store.down = {0}
    waiting = poll(every_poll)
    await until(lambda: ("pop", 0) in store.calls)
    await asyncio.sleep(RETRY_S)
    assert store.calls.count(("pop", 0)) <= 2
    store.down.clear()
    arrive(store, every_poll, there := store.id_in(0))
    assert ids(await asyncio.wait_for(waiting, SOON_S)) == [there]


async def test_when_a_rate_lets_the_next_job_through_is_told() -> None:
    """No push and no tick will say it."""

    class Limited(Shelf):
        async def _pop(self, demands: Sequence[Demand]) -> Popped:
            popped = await super()._pop(demands)
            return popped._replace(change=Change([], next_due_ms=5))

    store = Shelves(shelf=Limited)
    due: list[tuple[int, int]] = []
    store.on_due(lambda bucket, in_ms: due.append((bucket, in_ms)))
    assert await Polls(store).pop(("t",), 1, 0) == []
    assert due == [(0, 5)]


async def test_jobs_that_are_given_back_keep_their_order(store: Shelves, every_poll: Polls) -> None:
    mine = [store.id_in(0, word) for word in ("a", "b", "c")]
    store.put("t", *mine)
    every_poll.requeue(await poll(every_poll, wanted=3))
    await until(lambda: len(store.ready[0]["t"]) == 3)
    assert list(store.ready[0]["t"]) == mine


async def test_jobs_are_given_back_once_the_store_takes_them(
    store: Shelves, every_poll: Polls
) -> None:
    mine = [store.id_in(bucket) for bucket in range(store.buckets.count)]
    store.put("t", *mine)
    jobs = [job for _ in mine for job in await poll(every_poll)]
    store.down.update(range(store.buckets.count))
    every_poll.requeue(jobs)
    await until(lambda: ("requeue", 0) in store.calls)
    store.down.clear()
    await until(lambda: not store.held)


async def with_a_job_of_a_store_that_is_down() -> tuple[Shelves, Polls, list[Reserved]]:
    store = Shelves()
    every_poll = polls_on(store)
    store.put("t", "a")
    jobs = await poll(every_poll)
    store.down.add(0)
    return store, every_poll, jobs


async def test_a_store_that_stays_away_is_asked_ever_less_often_to_take_jobs_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store, every_poll, jobs = await with_a_job_of_a_store_that_is_down()
    monkeypatch.setattr("delayqueue.engine.undo.RETRY_S", 0.001)
    monkeypatch.setattr("delayqueue.engine.undo.PATIENCE_S", 0.5)
    every_poll.requeue(jobs)
    await until(lambda: "are delivered again after their TTR" in caplog.text)
    assert store.calls.count(("requeue", 0)) < 15


async def test_a_server_that_ends_does_not_wait_for_a_store_to_take_jobs_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, every_poll, jobs = await with_a_job_of_a_store_that_is_down()
    monkeypatch.setattr("delayqueue.engine.undo.RETRY_S", LONG_S)
    every_poll.requeue(jobs)
    await until(lambda: ("requeue", 0) in store.calls)
    await asyncio.wait_for(every_poll.close(), SOON_S)


async def test_an_answer_that_cannot_be_read_is_a_failure_that_is_outlasted(
    store: Shelves, every_poll: Polls, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = poll(every_poll)
    await settled(every_poll, store, waiting=1)
    store.mad.update(range(store.buckets.count))
    arrive(store, every_poll, "a")
    for wait_s in (0, LONG_S):
        with pytest.raises(Unavailable):
            await asyncio.wait_for(poll(every_poll, wait_s=wait_s), SOON_S)
    assert not waiting.done()
    assert "cannot pop jobs from bucket" in caplog.text
    store.mad.clear()
    assert ids(await asyncio.wait_for(waiting, SOON_S)) == ["a"]
    arrive(store, every_poll, "b")
    assert ids(await asyncio.wait_for(poll(every_poll), SOON_S)) == ["b"]


async def test_resync_finds_all_that_nobody_was_told_of(store: Shelves, every_poll: Polls) -> None:
    polls = [poll(every_poll) for _ in range(50)]
    await settled(every_poll, store, waiting=50)
    store.put("t", *(f"job-{n}" for n in range(50)))
    resync(every_poll, store)
    await until(lambda: all(each.done() for each in polls))


async def test_resync_reaches_every_line_in_turn(store: Shelves, every_poll: Polls) -> None:
    polls = [poll(every_poll, f"topic-{n}") for n in range(1200)]
    await settled(every_poll, store, waiting=1200)
    for number in range(1200):
        store.put(f"topic-{number}", f"job-{number}")
    for _ in range(3):
        resync(every_poll, store)
    await until(lambda: all(each.done() for each in polls))


async def test_close_answers_every_poll_and_gives_back_what_was_on_its_way(
    store: Shelves, every_poll: Polls
) -> None:
    store.put("t", "a")
    store.is_open.clear()
    polls = [poll(every_poll, topic) for topic in ("t", "t", "u")]
    await until(lambda: every_poll.waiting == 3)
    closing = asyncio.create_task(every_poll.close())
    assert await asyncio.gather(*polls) == [[], [], []]
    store.is_open.set()
    await closing
    assert list(store.ready[store.buckets.of("a")]["t"]) == ["a"]
    assert store.held == {}
    assert await every_poll.pop(("t",), 1, LONG_S) == []


async def test_close_ends_while_the_store_is_down(store: Shelves, every_poll: Polls) -> None:
    waiting = poll(every_poll)
    await settled(every_poll, store, waiting=1)
    store.down.update(range(store.buckets.count))
    arrive(store, every_poll, "a")
    await asyncio.wait_for(every_poll.close(), SOON_S)
    assert await waiting == []


async def test_nothing_keeps_the_jobs_of_a_poll_that_was_answered(
    store: Shelves, every_poll: Polls
) -> None:
    """Not until the poll's deadline, either: a thousand answered polls would be a thousand answers, of any size."""
    polling = poll(every_poll)
    await asyncio.sleep(0)
    arrive(store, every_poll, "a")
    jobs = await polling
    assert ids(jobs) == ["a"]
    assert not [
        each
        for each in gc.get_referrers(jobs)
        if isinstance(each, (asyncio.Future, Poll)) and each is not polling
    ]


async def test_what_the_server_takes_for_its_own_deliveries_is_no_waiting_client(
    store: Shelves, every_poll: Polls
) -> None:
    """Somebody who sees waiting polls at night concludes that workers are there."""
    own = every_poll.consume(("t",), 2)
    assert every_poll.waiting == 0
    client = poll(every_poll, "u")
    await until(lambda: every_poll.waiting == 1)
    arrive(store, every_poll, "a", "b")
    taken: list[str] = []
    while len(taken) < 2:  # each bucket answers by itself
        await own.future
        taken += ids(own.take())
    assert sorted(taken) == ["a", "b"]
    assert every_poll.waiting == 1
    every_poll.widen(own)
    assert every_poll.waiting == 1
    every_poll.leave(own)
    assert every_poll.waiting == 1
    client.cancel()
    await until(lambda: every_poll.waiting == 0)


async def test_clients_and_the_server_s_own_deliveries_leave_each_other_room() -> None:
    store = Shelves()
    every_poll = polls_on(store, max_polls=1)
    early = every_poll.consume(("t",), 1)
    client = every_poll.begin(("u",), 1, LONG_S)
    late = every_poll.consume(("v",), 1)
    with pytest.raises(TooMany):
        every_poll.begin(("w",), 1, LONG_S)
    for own, topic in ((early, "t"), (late, "v")):
        arrive(store, every_poll, f"job-{topic}", topic=topic)
        await asyncio.wait_for(own.future, SOON_S)
        assert ids(own.take()) == [f"job-{topic}"]
    every_poll.leave(client)
    assert not every_poll.begin(("w",), 1, LONG_S).future.done()
    await every_poll.close()
