"""A topic has the same settings in all buckets, whoever leaves or dies while they are changed."""

import asyncio
from functools import partial
from typing import Any

import pytest

from delayqueue.engine.settings_repair import SettingsRepair
from delayqueue.errors import Unavailable
from delayqueue.store.bucket import Bucket
from delayqueue.store.buckets import Layout
from delayqueue.store.store import Store
from delayqueue.store.topics import settings_in
from tests.engine.moving import Installation, all_jobs
from tests.store.between import before_send, failing_from

PAUSE, RESUME = ("pause", "t", 0), ("pause", "t", None)
FOUR, NO_LIMIT = ("limit", "t", {"concurrency": 4}), ("limit", "t", {"concurrency": None})
GROUPS = ("limit", "t", {"group_concurrency": 2, "max_jobs": 9, "rate": 0.3})
CHANGES = pytest.mark.parametrize(
    ("before", "change"),
    [
        (RESUME, PAUSE),
        (PAUSE, RESUME),
        (RESUME, FOUR),
        (FOUR, NO_LIMIT),
        (FOUR, GROUPS),
    ],
)


async def change_topic(store: Store, verb: str, *args: Any) -> None:
    await getattr(all_jobs(store).topics, verb)(*args)


async def settings(store: Store) -> list[dict[str, Any]]:
    """What the topic has in each bucket, without the bucket's own."""
    found = []
    for bucket in store.in_force:
        each = (await settings_in(bucket)).get("t", {})
        for own in "share", "changed":
            each.get("limit", {}).pop(own, None)
        found.append(each)
    return found


async def are_alike(store: Store) -> bool:
    first, *others = await settings(store)
    return others == [first] * len(others)


async def interrupted(store: Store, change: tuple[Any, ...]) -> None:
    """Make the change, which reaches the first bucket only."""
    undo = failing_from(store, 1, "split_limits")
    with pytest.raises(Unavailable):
        await change_topic(store, *change)
    undo()
    assert not await are_alike(store)


async def knowing(store: Store) -> SettingsRepair:
    """The repairs of a process that knows its data."""
    await store.watch.look()
    return SettingsRepair(store)


@CHANGES
async def test_a_change_of_a_client_that_leaves_reaches_all_buckets(
    ours: Installation, before: tuple[Any, ...], change: tuple[Any, ...]
) -> None:
    store = ours.server()
    await change_topic(store, *before)
    reached, goes_on = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        reached.set()
        await goes_on.wait()

    before_send(store, 1, wait, "split_limits")
    client = asyncio.create_task(change_topic(store, *change))
    await reached.wait()
    assert not await are_alike(store)
    client.cancel()
    with pytest.raises(asyncio.CancelledError):
        await client
    goes_on.set()
    await store.changes.ended()
    assert await are_alike(store)


@CHANGES
async def test_what_an_interrupted_change_left_is_repaired_at_the_second_look(
    ours: Installation,
    before: tuple[Any, ...],
    change: tuple[Any, ...],
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = ours.server(Layout(3))
    await change_topic(store, *before)
    await interrupted(store, change)
    [wanted, *_] = await settings(store)
    repair = await knowing(ours.server(Layout(3)))
    await repair.look()
    assert not await are_alike(store), "it may be under way"
    await repair.look()
    assert await settings(store) == [wanted] * 3
    await repair.look()
    await repair.look()
    assert caplog.text.count("the settings of topic 't'") == 1


async def test_settings_are_repaired_that_the_first_bucket_has_forgotten(
    ours: Installation,
) -> None:
    store = ours.server()
    await change_topic(store, *PAUSE)
    await interrupted(store, RESUME)
    await store.bucket(0).sweep(0, 9)
    assert not await ours.redis.hexists(store.bucket(0).keys.named("topics"), "t")
    repair = await knowing(store)
    for _ in range(2):
        await repair.look()
    assert await settings(store) == [{}, {}]


@pytest.mark.parametrize("change", [RESUME, FOUR])
async def test_a_repair_undoes_no_change_that_comes_in_between(
    ours: Installation, change: tuple[Any, ...]
) -> None:
    store, repairing = ours.server(), ours.server()
    await interrupted(store, PAUSE)
    repair = await knowing(repairing)
    await repair.look()
    before_send(repairing, 1, partial(change_topic, store, *change), "split_limits")
    await repair.look()
    assert await are_alike(store)
    [first, _] = await settings(store)
    assert ("paused_until" in first, "limit" in first) == (change == FOUR, change == FOUR)


async def empty(ours: Installation, bucket: int) -> None:
    """As if the master of a Cluster that holds the bucket had lost everything."""
    keys: Any = await ours.redis.keys(f"{{dq_bucket_{bucket}}}:*")
    await ours.redis.delete(*keys)


@pytest.mark.parametrize("knows", [True, False], ids=["noticed it", "was started afterwards"])
async def test_what_an_emptied_first_bucket_has_lost_is_kept_in_the_others(
    ours: Installation, knows: bool
) -> None:
    """A backup can bring it back."""
    store = ours.server(Layout(3))
    await change_topic(store, *PAUSE)
    repair = await knowing(store)
    await empty(ours, 1)
    if not knows:
        repair = SettingsRepair(ours.server(Layout(3)))
    for _ in range(2):
        await repair.look()
    if not knows:
        await repair._store.watch.look()
        await repair.look()
    assert await settings(store) == [{}, {"paused_until": 0}, {"paused_until": 0}]
    await store.watch.look()
    await store.watch.accept()
    for _ in range(2):
        await repair.look()
    assert await settings(store) == [{}] * 3


async def test_a_process_that_starts_while_a_bucket_is_away_repairs_the_others(
    ours: Installation,
) -> None:
    store = ours.server(Layout(3))
    await knowing(store)
    await interrupted(store, PAUSE)
    await ours.redis.delete("{dq_bucket_2}:fence")
    await ours.redis.set("{dq_bucket_2}:fence", "its calls fail")
    repair = await knowing(ours.server(Layout(3)))
    await repair.look()
    with pytest.raises(Unavailable):
        await repair.look()
    assert await settings(store) == [{"paused_until": 0}, {}, {"paused_until": 0}]


async def test_an_emptied_bucket_gets_back_the_settings_that_the_first_one_has(
    ours: Installation,
) -> None:
    """Else it would hand out jobs of paused topics, and more than limits allow."""
    store = ours.server(Layout(3))
    await change_topic(store, *PAUSE)
    repair = await knowing(store)
    await empty(ours, 3)
    await store.watch.look()
    assert store.watch.is_emptied
    for _ in range(2):
        await repair.look()
    assert await settings(store) == [{"paused_until": 0}] * 3
    assert store.watch.is_emptied


@pytest.mark.parametrize("written", ["[" * 9999, '{"limit":3}', "{"])
async def test_settings_that_cannot_be_read_do_not_end_the_repairs(
    ours: Installation, written: str
) -> None:
    store = ours.server()
    await change_topic(store, *PAUSE)
    await ours.redis.hset(store.bucket(1).keys.named("topics"), "t", written)
    repair = await knowing(store)
    for _ in range(2):
        await repair.look()
    assert await settings(store) == [{"paused_until": 0}] * 2


async def test_a_bucket_that_is_away_keeps_no_other_from_being_repaired(
    ours: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ours.server(Layout(3))
    await interrupted(store, PAUSE)
    monkeypatch.setattr(Bucket, "is_away", property(lambda bucket: bucket.number == 1))

    async def away(*_: Any) -> None:
        raise Unavailable

    store.bucket(1).ask = away  # type: ignore[assignment,method-assign]
    repair = await knowing(store)
    for _ in range(2):
        await repair.look()
    [first, _, third] = await settings(ours.server(Layout(3)))
    assert first == third == {"paused_until": 0}


async def test_a_copy_goes_on_to_the_other_buckets_if_one_fails(ours: Installation) -> None:
    store = ours.server(Layout(3))

    async def failing() -> None:
        raise Unavailable

    before_send(store, 1, failing, "split_limits")
    with pytest.raises(Unavailable):
        await change_topic(store, *PAUSE)
    [first, second, third] = await settings(store)
    assert (first, second, third) == ({"paused_until": 0}, {}, {"paused_until": 0})
