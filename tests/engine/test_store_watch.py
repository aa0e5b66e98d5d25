"""What a server says of its store, from what it sees every two seconds."""

import asyncio
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from redis.asyncio import Redis
from redis.exceptions import AuthenticationError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from delayqueue.errors import Text
from delayqueue.store import health, watch
from delayqueue.store.buckets import Buckets, Layout
from delayqueue.store.health import AILMENTS_BY_CLASS, Look, alarms_of
from delayqueue.store.servers import NOWHERE, Servers, Span
from delayqueue.store.store import Store
from delayqueue.store.watch import Marks
from tests.engine.moving import Installation

EVICTS: dict[str, Any] = {"maxmemory": 1, "maxmemory_policy": "allkeys-lru"}
SILENT = Look({"maxmemory": 0}, None)


def dropped(number: int) -> Look:
    return Look(EVICTS | {"evicted_keys": number}, None)


@pytest.mark.parametrize("outage", [[], [SILENT, SILENT], [dropped(31), SILENT]])
async def test_keys_that_were_dropped_before_an_outage_are_not_said_again(
    ours: Installation,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    outage: list[Look],
) -> None:
    before, after = [dropped(31), dropped(5)], [dropped(31), dropped(7)]
    looks = [before, outage, before, after]

    async def look_at(*_: Any) -> list[Look]:
        return looks.pop(0)

    monkeypatch.setattr(watch, "look_at", look_at)
    store = ours.server()
    for _ in range(3):
        await store.watch.look()
    assert "has dropped" not in caplog.text
    await store.watch.look()
    assert "the store has dropped 2 keys for room" in caplog.text


async def test_a_bucket_that_is_away_hides_no_other_that_was_emptied(ours: Installation) -> None:
    """`delay-queue check` reads the marks, too, and names the one that is away by itself."""
    store = ours.server(Layout(4))
    await store.watch.look()
    await ours.redis.delete("{dq_bucket_2}:fence", "{dq_bucket_3}:fence")
    await ours.redis.set("{dq_bucket_2}:fence", "its calls fail")
    found = await Marks(store.servers, store.buckets).read()
    assert found is not None
    assert "the buckets 3 are gone" in found.en
    await ours.redis.zadd("{dq_bucket_3}:fence", {"mark back": 0})
    assert await Marks(store.servers, store.buckets).read() is None


async def test_a_look_under_way_does_not_say_again_what_somebody_accepts_meanwhile(
    ours: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ours.server()
    await store.watch.look()
    await ours.redis.flushdb()
    has_read, goes_on, look = asyncio.Event(), asyncio.Event(), Marks.look

    async def slow(marks: Marks) -> Text | None:
        found = await look(marks)
        if not has_read.is_set():
            has_read.set()
            await goes_on.wait()
        return found

    monkeypatch.setattr(Marks, "look", slow)
    looking = asyncio.create_task(store.watch.look())
    await has_read.wait()
    accepting = asyncio.create_task(store.watch.accept())
    await asyncio.wait([accepting], timeout=0.1)
    goes_on.set()
    await asyncio.gather(looking, accepting)
    assert store.watch.alarms == []


@pytest.mark.parametrize(
    ("error", "is_gone"), [(FileNotFoundError(), True), (PermissionError(), False)]
)
def test_a_socket_that_cannot_be_looked_at_is_not_said_to_be_deleted(
    monkeypatch: pytest.MonkeyPatch, error: OSError, is_gone: bool
) -> None:
    """Before, the server ended if the rights of its directory were taken away."""
    monkeypatch.setattr(Path, "stat", Mock(side_effect=error))
    assert health._is_cut_off(Redis(unix_socket_path="/run/redis.sock")) is is_gone


AWAY = Look({"maxmemory": 0}, RedisTimeoutError("no answer"), [2, 5])
WELL = Look({"maxmemory": 0}, None, [1, 3])
MANY = Look({"maxmemory": 0}, RedisTimeoutError("no answer"), range(1, 99))
CLOSED = Look({"maxmemory": 0}, AuthenticationError("WRONGPASS"), [1])
ODD = Look({"maxmemory": 0}, ResponseError("DB index is out of range"), [1])


@pytest.mark.parametrize(
    ("looks", "says"),
    [
        ([WELL, WELL], []),
        ([AWAY, WELL], ["the store of buckets 2, 5 is unavailable: it does not answer"]),
        ([AWAY, MANY], ["the store is unavailable: it does not answer"]),
        ([CLOSED], [f"the store is unavailable: {AILMENTS_BY_CLASS[AuthenticationError].en}"]),
        ([ODD], ["the store is unavailable: it refuses calls; the log says more"]),
        (
            [WELL, MANY],
            [
                "the store of buckets 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, … is unavailable: it does not answer"
            ],
        ),
    ],
)
async def test_a_server_that_is_away_is_named_by_its_buckets_while_others_work(
    ours: Installation, monkeypatch: pytest.MonkeyPatch, looks: list[Look], says: list[str]
) -> None:
    async def look_at(*_: Any) -> list[Look]:
        return looks

    monkeypatch.setattr(watch, "look_at", look_at)
    store = ours.server()
    await store.watch.look()
    assert [each.en for each in store.watch.alarms] == says


async def test_buckets_that_no_server_of_a_cluster_holds_are_named(ours: Installation) -> None:
    half = [Span(0, 8191, NOWHERE)]  # the slots of the first bucket and the fourth
    servers = Servers(None, lambda _: ours.redis, lambda _: ours.redis, half)
    store = Store(servers, Buckets("dq_bucket_%d", "dq_queue_%s", Layout(4)))
    await store.watch.look()
    assert [each.en for each in store.watch.alarms] == [
        "the store of buckets 2, 3 is unavailable: no server of the Cluster holds a slot that is needed"
    ]
    assert store.watch.ailment is not None


def test_what_evicts_is_named_while_others_do_not() -> None:
    evicts = Look(EVICTS, None, [2])
    [one] = alarms_of([WELL, evicts])
    assert one.en.startswith("the store of bucket 2 drops jobs when its memory is full")
    assert one.zh.startswith("桶 2 的存储的 maxmemory-policy 为 allkeys-lru")
    [both] = alarms_of([evicts, evicts])
    assert both.en.startswith("the store drops jobs")
