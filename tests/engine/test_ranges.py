"""Ranges of due times over several buckets: their order, and what happens if a store or a client fails."""

import asyncio
from contextlib import suppress
from functools import partial
from itertools import product
from typing import Any

import pytest

from delayqueue.domain.job import State
from delayqueue.engine.jobs import Jobs
from delayqueue.errors import Invalid, Unavailable
from delayqueue.store.bucket import Bucket
from delayqueue.store.call import ScriptCall
from delayqueue.store.listings import Listings
from delayqueue.store.paging import write_cursor
from delayqueue.store.types import JobView, Listing, Range
from tests.engine.moving import BEFORE, EVER, Installation, all_jobs, in_any_state, source
from tests.store.between import Send, failing_from, intercept
from tests.store.bucket import HOUR_MS, job
from tests.store.invariants import violations
from tests.waiting import PATIENCE_S, until_async

NAMES = [f"job-{n:03}" for n in range(100)]
LISTINGS = (Listing("t", "", "", EVER), Listing("", "x", "", EVER))
STRANGERS_CURSORS = (
    *("e30=", "W10=", "WzFd", "null", "x", "é", "[" * 3000, "WyJhIiwiYiJd"),
    *("A" * 100_000, "WzEsMiwzLDQsNSw2XQ==", "W1tbXV1d"),
)
# of a cursor: how many jobs came before it, and the place where it goes on
NUMBERS: tuple[Any, ...] = (0, 1, 10**9, -1, 1.5, "1", True, None, [1], 10**400)
WINDOWS = (
    '0, "ready", "", "", true',
    '0, "ready", "5 9@0a", null, true',
    '0, "ready", "", "9 0@0a", false',
    f'0, "ready", "{"9" * 15} 0@0a", null, true',
    f'0, "buried", "{"9" * 15} x", "1 x", false',
    '0, "buried", "1 排", "", true',
    '0, "buried", "x", "", true',
    '0, "nothing", "", "", true',
    '99, "ready", "", "", true',
    'true, "ready", "", "", true',
    '0, "ready", "", "", 1',
    '0, "ready"',
)
PLACES: tuple[Any, ...] = (
    *("", "1 x", "x", "1 排", "1 \udc00", 7, None, "[" * 9000),
    *("{}", "[[]]", '["0"]', '["1", "x"]', '["x"]', f'["{"9" * 30}"]'),
    *('["9@0a", "job-001", "排"]', '["9@0a", "job-001", 7]'),
    *("[null, []]", '[[1, "x"], []]', '[[-1, "x"], []]', "[[1], []]"),
    f'[[{"9" * 400}, "x"], []]',
    *(f"[null, [[{window}]]]" for window in WINDOWS),
)


async def with_jobs(ours: Installation, **options: Any) -> Jobs:
    """A server, and jobs in both buckets that are due one after the other in the order of their names."""
    queue = all_jobs(ours.server())
    assert {source(name) for name in NAMES} == set(range(BEFORE))
    await queue.push_many([job(name, due_ms=n + 1, **options) for n, name in enumerate(NAMES)])
    return queue


async def everything(listings: Listings, what: Listing, limit: int = 7) -> list[JobView]:
    """All pages."""
    found, cursor = list[Any](), ""
    while True:
        jobs, cursor = await listings.list_jobs(what, limit, cursor)
        found += jobs
        assert len(jobs) <= limit
        if not cursor:
            return found


async def test_the_first_jobs_are_taken_over_all_buckets(ours: Installation) -> None:
    queue = await with_jobs(ours)
    taken = [await queue.taking.take("t", EVER, 30) for _ in range(4)]
    assert [[job.id for job in jobs] for jobs in taken] == [
        NAMES[:30],
        NAMES[30:60],
        NAMES[60:90],
        NAMES[90:],
    ]


async def test_what_was_taken_before_the_store_fails_is_answered(
    ours: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delayqueue.store.paging.PIECE", 20)
    queue = await with_jobs(ours)
    repair = failing_from(queue.taking._store, 3, "take")
    taken = [job.id for job in await queue.taking.take("t", EVER, 100)]
    assert len(taken) == 40
    assert taken == sorted(taken)
    with pytest.raises(Unavailable):
        await queue.taking.take("t", EVER, 100)
    repair()
    taken += [job.id for job in await queue.taking.take("t", EVER, 100)]
    assert sorted(taken) == NAMES


async def test_a_bucket_that_is_away_keeps_nobody_from_the_jobs_of_the_others(
    ours: Installation,
) -> None:
    queue = await with_jobs(ours)

    def send_to_the_second(bucket: Bucket, call: ScriptCall, sends: Send) -> None:
        if bucket.number == 0:
            call.end(Unavailable())
        else:
            sends(call)

    intercept(queue.taking._store, send_to_the_second)
    taken = [job.id for job in await queue.taking.take("t", EVER, 100)]
    assert taken == [name for name in NAMES if source(name) == 1]
    with pytest.raises(Unavailable):
        await queue.taking.take("t", EVER, 100)


@pytest.mark.parametrize("delay_ms", [0, HOUR_MS])
async def test_who_hangs_up_takes_nothing(ours: Installation, delay_ms: int) -> None:
    options: dict[str, Any] = {"tags": ("x",), "expire_ms": HOUR_MS, "retain_ms": HOUR_MS}
    store = ours.server()
    queue = all_jobs(store)
    await queue.push_many([job(name, delay_ms=delay_ms, **options) for name in NAMES])
    before = await queue.get(NAMES)
    under_way = asyncio.Event()
    loop = asyncio.get_running_loop()

    def slowly(_: Bucket, call: ScriptCall, sends: Send) -> None:
        end = call.end

        def end_later(answer: Any) -> None:
            under_way.set()
            loop.call_later(0.01, end, answer)  # slow enough to hang up

        if call.function.head.name == "take":
            call.end = end_later
        sends(call)

    intercept(store, slowly)
    request = asyncio.create_task(queue.taking.take("t", EVER, 100))
    await under_way.wait()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    await queue.taking.close()
    for bucket, keys in enumerate(store.buckets.keys):
        await store.bucket(bucket).tick()
        assert await violations(ours.redis, keys, ours.slots, among=store.buckets.keys) == []
    assert await queue.get(NAMES) == before
    assert await queue.topics.cancel("x", None) == 100


async def test_a_server_that_ends_puts_back_at_once_what_a_bucket_has_refused(
    ours: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delayqueue.engine.undo.RETRY_S", PATIENCE_S)
    queue = await with_jobs(ours)
    taken = await queue.taking.take("t", EVER, 100)
    failed = list[int]()

    def fail_once(bucket: Bucket, call: ScriptCall, sends: Send) -> None:
        if bucket.number == 0 and not failed:
            failed.append(0)
            call.end(Unavailable())
        else:
            sends(call)

    intercept(queue.taking._store, fail_once)
    queue.taking.restore(taken)

    async def others_are_back() -> bool:
        return bool(failed) and None in (found := await queue.get(NAMES)) and any(found)

    await until_async(others_are_back)  # the first try has ended
    await asyncio.wait_for(queue.taking.close(), PATIENCE_S / 2)
    assert None not in await queue.get(NAMES)


async def test_what_is_pushed_anew_is_not_put_back_over(ours: Installation) -> None:
    queue = await with_jobs(ours)
    taken = await queue.taking.take("t", EVER, 100)
    await queue.push(job(NAMES[0], body="new", delay_ms=HOUR_MS))
    queue.taking.restore(taken)
    await queue.taking.close()
    views = await queue.get(NAMES)
    assert [view and view.body for view in views] == [b"new", *[b"body"] * 99]


async def test_a_range_that_spans_now_is_listed_in_due_order_over_states_and_buckets(
    ours: Installation,
) -> None:
    queue = await with_jobs(ours)
    past = list(reversed(NAMES))  # the ready lists are not in the order of the due times
    await queue.push_many([job(name, due_ms=len(past) - n) for n, name in enumerate(past)])
    due_ms = int((await ours.redis.time())[0]) * 1000 + HOUR_MS
    later = [f"later-{n:02}" for n in range(40)]
    await queue.push_many([job(name, due_ms=due_ms + n // 3) for n, name in enumerate(later)])
    held = await queue.polls.pop(("t",), 10, 0)
    await queue.bury(held[0].id, held[0].nonce, "")
    await queue.push(job("kept", due_ms=0, retain_ms=HOUR_MS))
    await queue.finish(in_any_state(["kept"]))
    for limit in (7, 1000):
        listed = await everything(queue.listings, Listing("t", "", "", EVER), limit)
        assert [view.id for view in listed] == ["kept", *NAMES, *later]
    some = await everything(queue.listings, Listing("t", "", "", Range(50, due_ms)))
    assert [view.id for view in some] == [*NAMES[49:], *later[:3]]


async def test_jobs_that_become_ready_between_two_pages_are_listed_once(ours: Installation) -> None:
    store = ours.server()
    queue = all_jobs(store)
    await queue.push_many([job(name, delay_ms=HOUR_MS) for name in NAMES])
    what, cursor, found = Listing("t", "", "", EVER), "", list[str]()
    while True:
        jobs, cursor = await queue.listings.list_jobs(what, 7, cursor)
        found += [view.id for view in jobs]
        if not cursor:
            break
        await queue.kick([view.id for view in jobs[::2]])
    assert sorted(found) == NAMES


async def test_more_ready_jobs_than_are_put_in_order_together_are_all_listed(
    ours: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delayqueue.store.paging.SECTION", 10)
    queue = await with_jobs(ours)
    await queue.push_many([job(f"later-{n}", delay_ms=HOUR_MS) for n in range(30)])
    listed = [view.id for view in await everything(queue.listings, Listing("t", "", "", EVER))]
    assert sorted(listed[:100]) == NAMES
    assert sorted(listed[100:]) == sorted(f"later-{n}" for n in range(30))


async def test_a_cursor_of_somebody_else_is_refused(ours: Installation) -> None:
    listings = all_jobs(ours.server()).listings
    for what, cursor in product(LISTINGS, STRANGERS_CURSORS):
        with pytest.raises(Invalid):
            await listings.list_jobs(what, 7, cursor)


async def test_a_forged_cursor_is_refused_or_reads_what_anybody_may(ours: Installation) -> None:
    queue = await with_jobs(ours, tags=("x",))
    for what, number, place in product(LISTINGS, NUMBERS, PLACES):
        with suppress(Invalid):
            jobs, _ = await queue.listings.list_jobs(what, 7, write_cursor(what, number, place))
            assert {view.id for view in jobs} <= set(NAMES), (what, number, place)


@pytest.mark.parametrize("verb", ["cancel", "purge"])
async def test_what_ends_many_jobs_says_how_far_it_came(
    ours: Installation, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setattr("delayqueue.store.topics.PIECE", 20)
    store = ours.server()
    queue = all_jobs(store)
    await queue.push_many([job(name, delay_ms=HOUR_MS, tags=("x",)) for name in NAMES])
    repair = failing_from(store, 2, verb)
    work = (
        partial(queue.topics.cancel, "x", "")
        if verb == "cancel"
        else partial(queue.topics.purge, "t", "")
    )
    with pytest.raises(Unavailable) as failed:
        await work()
    left = [view for view in await queue.get(NAMES) if view]
    assert 0 < len(left) < 100
    assert f"{100 - len(left)} jobs were processed" in failed.value.text.en
    repair()
    assert await work() == len(left)


async def test_a_kick_counts_what_it_kicked_though_a_bucket_is_away(ours: Installation) -> None:
    store = ours.server()
    queue = all_jobs(store)
    some = NAMES[:40]  # a bucket's part of them is kicked by one call
    await queue.push_many([job(name, delay_ms=HOUR_MS) for name in some])
    failing_from(store, 2, "kick")
    mine = sum(source(name) == 0 for name in some)
    assert await queue.topics.kick("t", State.DELAYED, 1000) == mine
    with pytest.raises(Unavailable):
        await queue.topics.kick("t", State.DELAYED, 1000)
