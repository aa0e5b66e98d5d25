"""All topics and their counts: exact where there are few, found once for some seconds where there are many."""

import asyncio

import pytest

from delayqueue.store import census
from delayqueue.store.call import ScriptCall
from delayqueue.store.census import Census
from tests.store.between import Send, intercept
from tests.store.bucket import Bucket, job

TOPICS = 30


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(census, "MANY", TOPICS - 1)


async def fill(bucket: Bucket) -> Census:
    await bucket.push(*(job(f"{n}", topic=f"topic-{n:02}") for n in range(TOPICS)))
    return Census(bucket.store)


async def test_names_come_sorted_and_once(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    found = await fill(bucket)
    monkeypatch.setattr("delayqueue.store.census.NAMES_PER_CALL", 7)
    assert await found.names() == [f"topic-{n:02}" for n in range(TOPICS)]
    assert await found.names(lambda name: name.endswith("7")) == [
        "topic-07",
        "topic-17",
        "topic-27",
    ]


async def test_few_topics_are_counted_anew_for_each(bucket: Bucket) -> None:
    found = await fill(bucket)
    await found.all()
    await bucket.push(job("new", topic="another"))
    assert len(await found.all()) == TOPICS + 1


@pytest.mark.parametrize("kept_s", [600, 0])
async def test_many_topics_are_counted_once_for_some_seconds(
    bucket: Bucket, many: None, monkeypatch: pytest.MonkeyPatch, kept_s: float
) -> None:
    monkeypatch.setattr(census, "KEPT_S", kept_s)
    found = await fill(bucket)
    await found.all()
    await bucket.push(job("new", topic="another"))
    assert len(await found.all()) == TOPICS + (not kept_s)


async def test_who_asks_for_many_topics_at_the_same_time_shares_one_count(
    bucket: Bucket, many: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(census, "KEPT_S", 0)
    found = await fill(bucket)
    await found.all()  # from now on it knows that they are many
    await asyncio.sleep(0.01)
    calls: list[str] = []

    def count(_: object, call: ScriptCall, sends: Send) -> None:
        calls.append(call.function.head.name)
        sends(call)

    intercept(bucket.store, count)
    one, other = await asyncio.gather(found.all(), found.all())
    assert len(one) == len(other) == TOPICS
    assert calls == ["topics"]


async def test_topics_that_are_named_are_counted_anew_however_many_there_are(
    bucket: Bucket, many: None
) -> None:
    found = await fill(bucket)
    await found.all()
    await bucket.push(job("new", topic="another"))
    views = await found.of(["another", "unknown"])
    assert [(view.topic, view.ready) for view in views] == [("another", 1), ("unknown", 0)]
    assert [view.ready for view in await found.all(lambda name: name < "topic-02")] == [1, 1]
