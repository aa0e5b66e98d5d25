"""Pages of a listing while other jobs end and move: a job that stays where it is, is seen."""

import asyncio
import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from random import Random
from typing import Any, Final

import pytest

from delayqueue.domain.access import EVERYWHERE
from delayqueue.domain.job import MAX_ID_BYTES, Reserved
from delayqueue.engine.jobs import Jobs
from delayqueue.errors import Code, Invalid
from delayqueue.store import listings
from delayqueue.store.bucket import Bucket
from delayqueue.store.listings import Wanted
from delayqueue.store.paging import write_cursor
from delayqueue.store.store import Store
from delayqueue.store.types import Listing, Plan, Pushed
from delayqueue.store.verbs import BURY, REQUEUE, Burial, Requeue
from tests.engine.moving import EVER, Installation, all_jobs, in_any_state
from tests.store.bucket import HOUR_MS, LATER_MS, job
from tests.store.test_model import LONG
from tests.waiting import until

JOBS: Final = 60  # in each state
SECTION: Final = 10
PRIORITIES: Final = (1024, 1024, 1024, 7, 2000)
STATES: Final = ("delayed", "finished", "buried", "reserved", "ready")
MOST_PAGES: Final = 2000
HISTORIES: Final = 40 if LONG else 3
OF_TAG: Final = Listing("", "x", "", EVER)
OF_TOPIC: Final = Listing("t", "", "", EVER)
RUN_ID: Final = re.compile("@[0-9a-f]{40}")
VERBS: Final = ("end", "end", "pop", "pop", "sweep", "kick", "kick", "plan", "requeue", "push")


class Crowd:
    """Jobs of one topic and tag in all states, and a history of what becomes of some of them."""

    def __init__(self, store: Store, seed: int) -> None:
        self.queue = all_jobs(store)
        self.staying: set[str] = set()
        self._store = store
        self._random = Random(seed)
        self._restless: list[str] = []
        self._held: list[Reserved] = []
        self._pushed = 0

    async def arrive(self, states: Sequence[str] = STATES) -> None:
        for state in states:
            ids = await self.push(JOBS, HOUR_MS if state == "delayed" else 0)
            if state == "finished":
                await self.queue.finish(in_any_state(ids))
            elif state == "buried":
                await self._store.run(
                    BURY, [Burial(job_id, None, "no") for job_id in ids], EVERYWHERE
                )
            elif state == "reserved":
                self._held = await self.queue.polls.pop(("t",), JOBS, 0)
            self.staying |= {*ids}
        self._restless = self._random.sample(sorted(self.staying), len(self.staying) // 2)

    async def push(self, count: int, delay_ms: int = 0) -> list[str]:
        ids = [f"job-{self._pushed + n}" for n in range(count)]
        self._pushed += count
        jobs = [
            job(
                job_id,
                due_ms=None if delay_ms else self._random.randrange(10**9),
                delay_ms=delay_ms and delay_ms + self._random.randrange(9),
                tags=("x",),
                retain_ms=self._random.choice((0, HOUR_MS)) if delay_ms else HOUR_MS,
                priority=self._random.choice(PRIORITIES),
            )
            for job_id in ids
        ]
        assert set(await self.queue.push_many(jobs)) == {Pushed(Code.OK)}
        return ids

    async def go_on(self, shown: Sequence[str], ends: float) -> None:
        """End what a page has shown, as likely as `ends`; and let others move."""
        if shown and self._random.random() < ends:
            await self._move("end", shown)
        for _ in range(self._random.randrange(4)):
            some = self._random.sample(self._restless, min(5, len(self._restless)))
            await self._move(self._random.choice(VERBS), some)

    async def _move(self, verb: str, ids: Sequence[str]) -> None:
        queue = self.queue
        match verb:
            case "end":
                await queue.delete(in_any_state(ids))
            case "pop":
                popped = await queue.polls.pop(("t",), 7, 0)
                self._held += popped
                ids = [each.id for each in popped]
            case "requeue":
                ids = [each.id for each in self._held[-4:]]
                await self._store.run(
                    REQUEUE, [_return(each) for each in self._held[-4:]], EVERYWHERE
                )
                del self._held[-4:]
            case "kick":
                await queue.kick(ids)
                await self._store.run(
                    BURY, [Burial(job_id, None, "no") for job_id in ids[::2]], EVERYWHERE
                )
            case "plan":
                plans = (Plan(delay_ms=0), Plan(by_ms=HOUR_MS), Plan(priority=3))
                await queue.reschedule(ids, self._random.choice(plans))
            case "push":
                ids = await self.push(3)
            case _:
                ids = ()
                for bucket in range(self._store.buckets.count):
                    await self._store.bucket(bucket).tick()
                    await self._store.bucket(bucket).sweep(0, 100)
        self.staying -= {*ids}


def _return(held: Reserved) -> Requeue:
    return Requeue(held.id, held.nonce)


async def pages(queue: Jobs, what: Listing, limits: Sequence[int]) -> AsyncIterator[list[str]]:
    """The ids on each page of a listing, with another limit each time."""
    cursor = ""
    for number in range(MOST_PAGES):
        limit = limits[number % len(limits)]
        jobs, cursor = await queue.listings.list_jobs(what, limit, cursor)
        assert len(jobs) <= limit
        yield [each.id for each in jobs]
        if not cursor:
            return
    pytest.fail("the pages have no end")


@pytest.fixture(autouse=True)
def _short_sections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delayqueue.store.paging.SECTION", SECTION)


@pytest.mark.parametrize("seed", range(HISTORIES))
@pytest.mark.parametrize("what", [OF_TOPIC, OF_TAG], ids=["topic", "tag"])
async def test_a_job_that_stays_is_on_a_page_whatever_becomes_of_others(
    ours: Installation, what: Listing, seed: int
) -> None:
    crowd = Crowd(ours.server(), seed)
    await crowd.arrive()
    seen = set[str]()
    async for page in pages(crowd.queue, what, (7, 1, 30)):
        seen |= {*page}
        await crowd.go_on(page, ends=seed % 3 / 2)
    assert len(crowd.staying) > 10 or seed % 3 == 2
    assert crowd.staying - seen == set()


@pytest.mark.parametrize("what", [OF_TOPIC, OF_TAG], ids=["topic", "tag"])
async def test_a_job_is_on_one_page_only_while_none_moves(
    ours: Installation, what: Listing
) -> None:
    crowd = Crowd(ours.server(), 1)
    await crowd.arrive()
    seen = [job_id async for page in pages(crowd.queue, what, (4, 33)) for job_id in page]
    assert sorted(seen) == sorted(crowd.staying)


@pytest.mark.parametrize("what", [OF_TOPIC, OF_TAG], ids=["topic", "tag"])
async def test_cursors_of_another_process_of_the_store_lead_to_all_jobs_again(
    ours: Installation, what: Listing
) -> None:
    crowd = Crowd(ours.server(), 1)
    await crowd.arrive()
    await crowd.push(1000, HOUR_MS)  # enough for a hash table
    seen = set[str]()
    cursor = ""
    for number in range(MOST_PAGES):
        jobs, cursor = await crowd.queue.listings.list_jobs(what, 50, cursor)
        seen |= {each.id for each in jobs}
        if not cursor:
            break
        if number < 5:
            cursor = of_another_process(cursor)
    assert not cursor
    assert crowd.staying <= seen


@pytest.mark.parametrize("turn", range(13, 19))
async def test_ready_jobs_are_on_pages_though_others_are_put_back_before_them(
    ours: Installation, turn: int
) -> None:
    crowd = Crowd(ours.server(), 1)
    await crowd.push(JOBS)
    held = await crowd.queue.polls.pop(("t",), 50, 0)
    crowd.staying = {*await crowd.push(JOBS)}

    async def put_back() -> None:
        await crowd._store.run(REQUEUE, [_return(each) for each in held], EVERYWHERE)

    assert crowd.staying - await seen_if(crowd.queue, turn, put_back) == set()


@pytest.mark.parametrize("turn", [0, 7, 14] if LONG else [7])
async def test_jobs_that_become_due_meanwhile_are_on_pages(ours: Installation, turn: int) -> None:
    crowd = Crowd(ours.server(), 1)
    await crowd.push(JOBS // 2)
    waiting = [job(f"waits-{n}", delay_ms=LATER_MS) for n in range(3 * JOBS)]
    await crowd.queue.push_many(waiting)

    async def come_due() -> None:
        await asyncio.sleep(LATER_MS / 1000)
        for bucket in range(crowd._store.buckets.count):
            await crowd._store.bucket(bucket).tick()

    assert {each.id for each in waiting} - await seen_if(crowd.queue, turn, come_due) == set()


async def test_a_job_that_becomes_ready_while_a_page_is_read_is_on_it(
    ours: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, run = all_jobs(ours.server()), Bucket.run
    await queue.push_many([job("moves", delay_ms=HOUR_MS)])

    async def run_and_kick(*call: Any) -> Any:
        answer = await run(*call)
        await queue.kick(["moves"])
        return answer

    monkeypatch.setattr(Bucket, "run", run_and_kick)
    jobs, _ = await queue.listings.list_jobs(OF_TOPIC, 4, "")
    assert [each.id for each in jobs] == ["moves"]


async def test_a_job_that_is_found_in_two_states_is_once_on_a_page(
    ours: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, run, was_delayed = all_jobs(ours.server()), Bucket.run, set[Bucket]()
    await queue.push_many([job("moves", delay_ms=HOUR_MS)])

    async def run_after_delayed(bucket: Bucket, script: str, args: Any, *scope: Any) -> Any:
        if script == "range" and args[1] != "delayed":
            await until(lambda: bucket in was_delayed)
            await queue.kick(["moves"])
        answer = await run(bucket, script, args, *scope)
        was_delayed.add(bucket)
        return answer

    monkeypatch.setattr(Bucket, "run", run_after_delayed)
    jobs, _ = await queue.listings.list_jobs(OF_TOPIC, 4, "")
    assert [each.id for each in jobs] == ["moves"]


async def test_a_failover_at_any_page_hides_no_ready_job(ours: Installation) -> None:
    crowd = Crowd(ours.server(), 1)
    await crowd.arrive(("ready",))
    for turn in range(16):
        assert crowd.staying - await seen_if(crowd.queue, turn, None) == set()


async def seen_if(
    queue: Jobs, turn: int, happens: Callable[[], Awaitable[None]] | None
) -> set[str]:
    """The ids on pages of the topic if something happens after that page, None = a failover."""
    seen, cursor = set[str](), ""
    for number in range(MOST_PAGES):
        jobs, cursor = await queue.listings.list_jobs(OF_TOPIC, 4, cursor)
        seen |= {each.id for each in jobs}
        if not cursor:
            return seen
        if number == turn and happens:
            await happens()
        elif number == turn:
            cursor = of_another_process(cursor)
    pytest.fail("the pages have no end")


def of_another_process(cursor: str) -> str:
    """The cursor as if a store with another run_id had returned it."""
    written = urlsafe_b64decode(cursor).decode()
    return urlsafe_b64encode(RUN_ID.sub("@0123abcd", written).encode()).decode()


@pytest.mark.parametrize("number", [2**64, 10**20 - 1])
async def test_cursors_that_the_store_would_refuse_are_refused_first(
    ours: Installation, number: int
) -> None:
    queue = all_jobs(ours.server())
    scan = f"{number}@{(await ours.redis.info('server'))['run_id']}"
    with pytest.raises(Invalid):
        await queue.listings.list_jobs(OF_TAG, 1, write_cursor(OF_TAG, 0, json.dumps([scan])))
    wanted = Wanted("a", "", "")
    with pytest.raises(Invalid):
        await queue.listings.find(wanted, 1, write_cursor(wanted, 0, f"ended {scan}"))


@pytest.mark.parametrize("what", [OF_TOPIC, OF_TAG], ids=["topic", "tag"])
async def test_the_longest_ids_fit_into_cursors(ours: Installation, what: Listing) -> None:
    queue = all_jobs(ours.server())
    ids = [f"{number:03}".ljust(MAX_ID_BYTES // 2, "é")[:-2] for number in range(300)]
    await queue.push_many([job(each, tags=("x",)) for each in ids])
    seen = [job_id async for page in pages(queue, what, [1, 30]) for job_id in page]
    assert sorted(seen) == ids


async def test_a_dead_letter_that_stays_is_on_a_page_although_others_are_kicked(
    ours: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listings, "ENTRIES_PER_CALL", 3)
    monkeypatch.setattr(listings, "MOST_LETTERS", 7)
    crowd = Crowd(ours.server(), 1)
    await crowd.arrive(("buried",))
    seen, cursor = set[str](), ""
    for _ in range(MOST_PAGES):
        letters, cursor = await crowd.queue.listings.dead_letters(["t"], ("all",), cursor)
        seen |= {letter.id for letter in letters}
        if not cursor:
            break
        kicked = [letter.id for letter in letters]
        await crowd.queue.kick(kicked)
        await crowd.go_on((), 0)
        crowd.staying -= {*kicked}
    assert not cursor
    assert crowd.staying <= seen
