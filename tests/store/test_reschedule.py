"""reschedule by a distance, and with another priority; tests/store/test_kick.py has the rest."""

from typing import Any, Final

import pytest

from delayqueue.domain.access import EVERYWHERE
from delayqueue.domain.job import MAX_DUE_S
from delayqueue.errors import Code, Unavailable
from delayqueue.store.topics import Topics
from delayqueue.store.types import Moved, Plan
from delayqueue.store.verbs import STAGED_DUE_MS
from tests.engine.moving import all_jobs
from tests.store.bucket import HOUR_MS, STATES, Bucket, job

WAITING: Final = [state for state in STATES if state != "reserved"]
LARGE_BYTES: Final = 400_000
MANY: Final = 700  # more than a piece, and a hash table for the tag


async def test_a_job_moves_by_a_distance_from_its_own_due_time(bucket: Bucket) -> None:
    due_ms = await bucket.now_ms() + 3 * HOUR_MS
    await bucket.push(job("a", due_ms=due_ms))
    assert await bucket.change("a", by_ms=HOUR_MS + 1) == Moved(Code.OK, due_ms + HOUR_MS + 1)
    assert await bucket.change("a", by_ms=-2 * HOUR_MS) == Moved(Code.OK, due_ms - HOUR_MS + 1)
    view = await bucket.view("a")
    assert (view.state, view.due_ms) == ("delayed", due_ms - HOUR_MS + 1)


async def test_a_ready_job_is_delayed_only_if_the_distance_leads_into_the_future(
    bucket: Bucket,
) -> None:
    await bucket.push(job("a"), job("b"))
    due_ms = (await bucket.view("a")).due_ms
    assert await bucket.change("a", by_ms=-HOUR_MS) == Moved(Code.OK, due_ms)
    assert await bucket.state("a") == "ready"
    assert await bucket.change("b", by_ms=HOUR_MS) == Moved(Code.OK, due_ms + HOUR_MS)
    assert await bucket.state("b") == "delayed"
    assert await bucket.pop_ids() == ["a"]


async def test_no_distance_leads_behind_the_last_due_time(bucket: Bucket) -> None:
    last_ms = MAX_DUE_S * 1000
    await bucket.push(job("a", due_ms=last_ms - 1))
    assert await bucket.change("a", by_ms=2) == Moved(Code.INVALID, None)
    assert await bucket.change("a", by_ms=1) == Moved(Code.OK, last_ms)


async def test_a_job_that_an_import_has_staged_is_not_moved_by_a_distance(bucket: Bucket) -> None:
    await bucket.push(job("a", due_ms=STAGED_DUE_MS, tags=("x",)))
    assert await bucket.change("a", by_ms=-HOUR_MS) == Moved(Code.INVALID, None)
    assert (
        await Topics(bucket.store, EVERYWHERE).reschedule_tag("x", None, Plan(by_ms=-HOUR_MS)) == 0
    )
    assert (await bucket.view("a")).due_ms == STAGED_DUE_MS


@pytest.mark.parametrize("state", WAITING)
@pytest.mark.parametrize(("before", "after"), [(1024, 7), (7, 1024), (7, 9), (7, 7)])
async def test_a_priority_alone_changes_nothing_else(
    bucket: Bucket, state: str, before: int, after: int
) -> None:
    texts = {"group": "g"}
    await bucket.put_in(state, priority=before, tags=("x",), retry_ms=(5,), texts=texts)
    was = await bucket.view("a")
    assert await bucket.change("a", priority=after) == Moved(Code.OK, was.due_ms)
    now = await bucket.view("a")
    was.priority = after
    assert now == was


async def test_a_ready_job_with_another_priority_comes_in_its_order(bucket: Bucket) -> None:
    await bucket.push(*(job(job_id) for job_id in "abcd"))
    await bucket.change("c", priority=1)
    await bucket.change("a", priority=2000)
    assert await bucket.pop_ids(wanted=2) == ["c", "b"]
    await bucket.change("a", priority=1024)
    assert {*await bucket.pop_ids()} == {"a", "d"}


async def test_large_jobs_are_rescheduled_by_their_ids_some_at_a_time(bucket: Bucket) -> None:
    body = "x" * LARGE_BYTES
    ids = [f"large-{number}" for number in range(30)]
    for job_id in ids:
        await bucket.push(job(job_id, body=body))
    moved = await all_jobs(bucket.store).reschedule(ids, Plan(by_ms=HOUR_MS))
    assert [one.code for one in moved] == [Code.OK] * len(ids)


class Doubling:
    """A bucket whose SSCAN returns ids again, as Redis may while a set shrinks."""

    def __init__(self, bucket: Bucket) -> None:
        self._run = bucket.store.bucket(0).run
        self.pages = 0

    async def run(self, verb: str, args: list[Any], *rest: Any) -> Any:
        reply = await self._run(verb, args, *rest)
        if verb == "tag_ids":
            self.pages += 1
            place, ids = reply.results
            again = await self._run(verb, [*args[:2], b"0"], *rest)
            return reply._replace(results=[place, [*ids, *again.results[1], *ids]])
        return reply


async def test_each_job_of_a_tag_moves_once_though_the_store_names_it_twice(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ms = await bucket.now_ms()
    dues = {f"job-{number}": now_ms + HOUR_MS + number for number in range(MANY)}
    for place in range(0, MANY, 100):
        some = [*dues.items()][place : place + 100]
        await bucket.push(*(job(job_id, due_ms=due_ms, tags=("x",)) for job_id, due_ms in some))
    doubling = Doubling(bucket)
    monkeypatch.setattr(bucket.store.bucket(0), "run", doubling.run)
    topics = Topics(bucket.store, EVERYWHERE)
    assert await topics.reschedule_tag("x", None, Plan(by_ms=-60_000)) == MANY
    assert doubling.pages > 1
    for job_id in ("job-0", "job-350", f"job-{MANY - 1}"):
        assert (await bucket.view(job_id)).due_ms == dues[job_id] - 60_000
    assert await topics.reschedule_tag("x", "other", Plan(by_ms=-60_000)) == 0
    assert await topics.reschedule_tag("x", "t", Plan(by_ms=0)) == 0


async def test_a_move_that_broke_off_does_not_ask_for_a_repeat(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bucket.push(job("a", tags=("x",)))
    run = bucket.store.bucket(0).run

    async def fail(verb: str, *rest: Any) -> Any:
        if verb == "reschedule_tag":
            raise Unavailable
        return await run(verb, *rest)

    monkeypatch.setattr(bucket.store.bucket(0), "run", fail)
    topics = Topics(bucket.store, EVERYWHERE)
    with pytest.raises(Unavailable, match="moves them again"):
        await topics.reschedule_tag("x", None, Plan(by_ms=1))
    with pytest.raises(Unavailable, match="try again for the rest"):
        await topics.reschedule_tag("x", None, Plan(delay_ms=1))


async def test_the_priority_of_a_tags_jobs_changes_and_is_counted_once(bucket: Bucket) -> None:
    await bucket.push(*(job(job_id, tags=("x",)) for job_id in "abc"))
    topics = Topics(bucket.store, EVERYWHERE)
    assert await topics.reschedule_tag("x", None, Plan(priority=5)) == 3
    assert await topics.reschedule_tag("x", None, Plan(priority=5)) == 0
    assert await topics.reschedule_tag("x", None, Plan(delay_ms=HOUR_MS, priority=6)) == 3
    assert {(await bucket.view(job_id)).priority for job_id in "abc"} == {6}
