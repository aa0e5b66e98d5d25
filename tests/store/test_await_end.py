"""await_end: whoever waits for the end of a job hears of it, whatever ends it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import pytest

from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.store.announcements import listen
from delayqueue.store.types import START
from delayqueue.store.verbs import AWAIT_END, GET
from delayqueue.tasks import cancel_all
from tests.store.bucket import HOUR_MS, SOON_MS, STATES, Bucket, TagPage, a_moment, job
from tests.waiting import until

KEPT_MS: Final = 15_000  # as await_end.lua keeps what is noted


async def awaited(bucket: Bucket, *ids: str, scope: Scope = EVERYWHERE) -> list[bool]:
    """Whether each job has still to end."""
    results, _ = await bucket.store.run_verb(AWAIT_END, 0, ids, scope)
    return [not told for told in results]


@asynccontextmanager
async def listening(bucket: Bucket) -> AsyncIterator[list[str]]:
    """The ids whose ends are announced meanwhile."""
    ended: list[str] = []
    subscribed: list[int] = []
    listener = asyncio.create_task(
        listen(bucket.store, lambda *_: None, ended.append, subscribed.append)
    )
    await until(lambda: bool(subscribed))
    try:
        yield ended
    finally:
        await cancel_all([listener])


async def expire_delayed(bucket: Bucket) -> None:
    await bucket.push(job("a", expire_ms=SOON_MS))
    await awaited(bucket, "a")
    await a_moment()
    await bucket.tick()


async def expire_when_popped(bucket: Bucket) -> None:
    await bucket.push(job("a", expire_ms=SOON_MS))
    await awaited(bucket, "a")
    await a_moment()
    assert await bucket.pop() == []


async def time_out_for_good(bucket: Bucket) -> None:
    await bucket.push(job("a", ttr_ms=SOON_MS, retry_ms=()))
    await bucket.pop_one()
    await awaited(bucket, "a")
    await a_moment()
    await bucket.tick()


async def fail_for_good(bucket: Bucket) -> None:
    await bucket.push(job("a", retry_ms=()))
    await bucket.pop_one()
    await awaited(bucket, "a")
    await bucket.release("a")


def of_pushed(end: Callable[[Bucket], Awaitable[object]]) -> Callable[[Bucket], Awaitable[object]]:
    async def do(bucket: Bucket) -> None:
        await bucket.push(job("a", tags=("x",)))
        assert await awaited(bucket, "a") == [True]
        await end(bucket)

    return do


async def finish_with_a_record(bucket: Bucket) -> None:
    await bucket.push(job("a", retain_ms=HOUR_MS))
    await awaited(bucket, "a")
    await bucket.finish("a")


WAYS: Final[dict[str, Callable[[Bucket], Awaitable[object]]]] = {
    "finish": of_pushed(lambda bucket: bucket.finish("a")),
    "finish, and keep a record": finish_with_a_record,
    "delete": of_pushed(lambda bucket: bucket.delete("a")),
    "bury": of_pushed(lambda bucket: bucket.bury("a")),
    "take": of_pushed(lambda bucket: bucket.take()),
    "purge": of_pushed(lambda bucket: bucket.store.purge(0, "t", "", 10)),
    "cancel": of_pushed(
        lambda bucket: bucket.store.cancel(0, TagPage("x", None, 10, START, EVERYWHERE))
    ),
    "expire": expire_delayed,
    "expire when popped": expire_when_popped,
    "time out": time_out_for_good,
    "fail": fail_for_good,
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
async def test_each_way_of_ending_is_announced_once(
    bucket: Bucket, way: Callable[[Bucket], Awaitable[object]]
) -> None:
    async with listening(bucket) as ended:
        await way(bucket)
        assert await awaited(bucket, "a") == [False]
        await bucket.push(job("last"))
        await awaited(bucket, "last")
        await bucket.finish("last")
        await until(lambda: "last" in ended)
    assert ended == ["a", "last"]


async def test_without_a_waiter_nothing_is_announced(bucket: Bucket) -> None:
    await bucket.push(job("a"), job("b"), job("c"))
    async with listening(bucket) as ended:
        await awaited(bucket, "b")
        await bucket.finish("a", "b", "c")
        await until(lambda: bool(ended))
    assert ended == ["b"]
    assert await bucket.redis.exists(bucket.key("awaited")) == 0


async def test_a_job_that_is_delivered_again_has_not_ended(bucket: Bucket) -> None:
    await bucket.push(job("a"), job("b"))
    async with listening(bucket) as ended:
        await awaited(bucket, "a", "b")
        await bucket.pop()
        await bucket.release("a")
        await bucket.reschedule("a", delay_ms=HOUR_MS)
        await bucket.push(job("a"))
        await bucket.finish("b")
        await until(lambda: bool(ended))
    assert ended == ["b"]


@pytest.mark.parametrize("state", STATES)
async def test_a_buried_job_has_ended_and_others_have_not(bucket: Bucket, state: str) -> None:
    await bucket.put_in(state)
    assert await awaited(bucket, "a") == [state != "buried"]


async def test_unknown_kept_and_hidden_jobs_have_ended(bucket: Bucket) -> None:
    await bucket.push(job("kept", retain_ms=HOUR_MS), job("hidden"))
    await bucket.finish("kept")
    ids = ("unknown", "kept", "hidden")
    assert await awaited(bucket, *ids, scope=Scope(("u",))) == [False] * 3
    assert await bucket.redis.exists(bucket.key("awaited")) == 0


async def test_all_is_told_of_a_job_that_has_ended(bucket: Bucket) -> None:
    await bucket.push(job("kept", retain_ms=HOUR_MS), job("buried"), job("ready"))
    await bucket.finish("kept")
    await bucket.bury("buried")
    ids = ("buried", "ready", "kept", "unknown")
    ends, _ = await bucket.store.run_verb(AWAIT_END, 0, ids, EVERYWHERE)
    buried, _, kept, unknown = (await bucket.store.run_verb(GET, 0, ids, EVERYWHERE))[0]
    assert ends == [(buried,), (), (kept,), (unknown,)]
    assert buried is not None
    assert kept is not None
    assert unknown is None


async def test_what_is_noted_is_forgotten_by_itself(bucket: Bucket) -> None:
    await bucket.push(job("a"), job("b"))
    await awaited(bucket, "a")
    assert 0 < await bucket.redis.pttl(bucket.key("awaited")) <= KEPT_MS
    await bucket.redis.zadd(bucket.key("awaited"), {"gone": 1})
    await awaited(bucket, "b")
    assert await bucket.redis.zrange(bucket.key("awaited"), 0, -1) == [b"a", b"b"]


async def test_a_broken_key_delays_only_the_news(bucket: Bucket) -> None:
    await bucket.push(job("a"))
    await bucket.spoil("awaited")
    assert await awaited(bucket, "a") == [True]
    assert await bucket.finish("a") == [0]
    await bucket.redis.delete(bucket.key("awaited"))


@pytest.mark.parametrize("said", [b"hello", b"", b"x 1", b"x many t", b"x 1e9 t", b"\xff"])
async def test_a_message_that_no_server_sends_is_ignored(bucket: Bucket, said: bytes) -> None:
    await bucket.push(job("a"))
    await awaited(bucket, "a")
    channel = bucket.keys.named("ready")
    async with listening(bucket) as ended:
        await bucket.store.servers.of(channel).execute_command("SPUBLISH", channel, said)  # type: ignore[no-untyped-call]
        await bucket.delete("a")
        await until(lambda: ended == ["a"])


async def test_who_waits_for_a_job_behind_a_broken_key_goes_on_waiting(bucket: Bucket) -> None:
    await bucket.push(job("a"), job("b", topic="u"))
    await bucket.spoil("buried:t")
    assert await awaited(bucket, "a", "b", "none") == [True, True, False]
    await bucket.redis.delete(bucket.key("buried:t"))


@pytest.mark.parametrize("has_ended", [False, True])
async def test_no_call_looks_for_all_of_many_large_jobs(bucket: Bucket, has_ended: bool) -> None:
    ids = [f"job-{n}" for n in range(12)]
    await bucket.push(*(job(each, body="x" * 900_000, retain_ms=HOUR_MS) for each in ids))
    if has_ended:
        await bucket.finish(*ids)
    assert 0 < len(await awaited(bucket, *ids)) < 12
