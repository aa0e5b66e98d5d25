"""register, unregister, registered: subscribers and schedules, which all servers share."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from delayqueue.domain.schedule import CatchUp, Schedule
from delayqueue.domain.subscriber import Subscriber
from delayqueue.engine.subscribers import Subscribers
from delayqueue.store.registry import Entry, Registry
from tests.store.bucket import Bucket, job

EXISTS = 5


def entry(name: str, text: str = "", *, declared: bool = False) -> Entry:
    return Entry(name, json.dumps({"text": text, "declared": declared}))


@pytest.fixture
def registry(bucket: Bucket) -> Registry:
    return bucket.store.registry


async def all_of(registry: Registry) -> set[Entry]:
    return set((await registry.registered("subscribers")).entries or [])


async def test_what_is_registered_is_read_until_it_is_dropped(registry: Registry) -> None:
    one, two = entry("one"), entry("naïve 排队")
    for each in (one, two):
        assert await registry.register("subscribers", each, "fail") == 0
    assert await all_of(registry) == {one, two}
    assert await registry.unregister("subscribers", "one") == 0
    assert await registry.unregister("subscribers", "one") == 2
    assert await all_of(registry) == {two}


async def test_a_pause_goes_with_its_subscriber(registry: Registry) -> None:
    one = entry("one")
    await registry.register("subscribers", one, "fail")
    assert await registry.pause_subscriber("one", is_paused=True) == 0
    assert await all_of(registry) != {one}
    await registry.unregister("subscribers", "one")
    await registry.register("subscribers", one, "fail")
    assert await all_of(registry) == {one}


async def test_they_are_counted_without_being_read(registry: Registry, bucket: Bucket) -> None:
    for name in ("one", "two", "three"):
        await registry.register("subscribers", entry(name), "fail")
    await registry.register("schedules", Entry("four", "not JSON", 1), "fail")
    await registry.unregister("subscribers", "two")
    began_ms = await bucket.now_ms()
    now_ms, subscribers, schedules = await registry.state()
    assert began_ms <= now_ms <= await bucket.now_ms()
    assert (subscribers, schedules) == (2, 1)


async def test_one_can_be_read_by_its_name(registry: Registry) -> None:
    for name in ("one", "two"):
        assert await registry.register("subscribers", entry(name), "fail") == 0
    assert (await registry.registered("subscribers", name="two")).entries == [entry("two")]
    assert (await registry.registered("subscribers", name="three")).entries == []


@pytest.mark.parametrize(
    ("if_exists", "code", "text"),
    [("fail", EXISTS, "old"), ("keep", 0, "old"), ("replace", 0, "new")],
)
async def test_a_name_that_is_there(
    registry: Registry, if_exists: str, code: int, text: str
) -> None:
    await registry.register("subscribers", entry("one", "old"), "fail")
    assert await registry.register("subscribers", entry("one", "new"), if_exists) == code
    assert await all_of(registry) == {entry("one", text)}


async def test_the_revision_changes_with_the_contents_only(registry: Registry) -> None:
    first = (await registry.registered("subscribers")).revision
    assert (await registry.registered("subscribers", first)).entries is None
    await registry.register("subscribers", entry("one"), "fail")
    second, entries, _ = await registry.registered("subscribers", first)
    assert entries == [entry("one")]
    await registry.register("subscribers", entry("one"), "replace")
    await registry.unregister("subscribers", "two")
    assert (await registry.registered("subscribers", second)).entries is None
    await registry.unregister("subscribers", "one")
    assert (await registry.registered("subscribers", second)).entries == []


async def test_a_reservation_tells_the_revision_at_its_time(
    registry: Registry, bucket: Bucket
) -> None:
    async def told() -> str | None:
        await bucket.push(job("a"))
        return (await bucket.pop_one()).revision

    assert await told() is None
    await registry.register("subscribers", entry("one"), "fail")
    first = await told()
    assert first == (await registry.registered("subscribers")).revision
    await registry.register("schedules", entry("two"), "fail")
    assert await told() == first
    await registry.pause_subscriber("one", is_paused=True)
    assert await told() == (await registry.registered("subscribers")).revision != first
    await bucket.spoil("revisions")
    assert await told() is None


@pytest.mark.parametrize("how", ["change", "replace", "declare"])
@pytest.mark.parametrize(
    ("fields", "time_ms"),
    [
        ({"body": "new"}, 5000),
        ({"topic": "u", "ttr_ms": 1000, "catch_up": CatchUp.ALL}, 5000),
        ({"every_ms": 2000}, 6000),
        ({"every_ms": 0, "cron": "* * * * *"}, 6000),
        ({"paused": True}, None),
        ({"tz": "Asia/Shanghai"}, 6000),
    ],
    ids=str,
)
async def test_a_schedule_keeps_its_next_time_which_may_be_due_if_its_times_stay(
    registry: Registry, how: str, fields: dict[str, Any], time_ms: int | None
) -> None:
    schedule = Schedule(name="s", topic="t", every_ms=1000, declared=how == "declare")
    former = Entry("s", schedule.definition, 5000)
    new_ms = None if fields.get("paused") else 6000
    wanted = Entry("s", replace(schedule, **fields).definition, new_ms)
    if how == "declare":
        codes = [*await registry.declare("schedules", [former])]
        codes += await registry.declare("schedules", [wanted])
    else:
        codes = [await registry.register("schedules", former, "fail")]
        if how == "change":
            codes.append(await registry.change("schedules", wanted, former))
        else:
            codes.append(await registry.register("schedules", wanted, "replace"))
    assert codes == [0, 0]
    assert (await registry.registered("schedules")).entries == [wanted._replace(time_ms=time_ms)]


@pytest.mark.parametrize("how", ["fail", "replace", "keep", "declare"])
async def test_a_schedule_that_is_sent_again_gets_the_next_time_that_the_store_has_lost(
    registry: Registry, bucket: Bucket, how: str
) -> None:
    schedule = Schedule(name="s", topic="t", every_ms=1000, declared=how == "declare")
    for time_ms in (5000, 6000):
        entry = Entry("s", schedule.definition, time_ms)
        if how == "declare":
            assert await registry.declare("schedules", [entry]) == [0]
        else:
            assert await registry.register("schedules", entry, how) == 0
        assert (await registry.registered("schedules")).entries == [entry]
        await bucket.redis.delete(bucket.key("schedule_times"))


@pytest.mark.parametrize("former", ["no JSON", "1", "{}"])
async def test_a_schedule_in_the_place_of_what_cannot_be_read_gets_its_next_time(
    registry: Registry, former: str
) -> None:
    await registry.register("schedules", Entry("s", former, 5000), "fail")
    wanted = Entry("s", Schedule(name="s", topic="t", every_ms=1000).definition, 6000)
    assert await registry.register("schedules", wanted, "replace") == 0
    assert (await registry.registered("schedules")).entries == [wanted]


async def test_what_a_file_declares_replaces_what_it_declared_before(registry: Registry) -> None:
    own = entry("own")
    await registry.register("subscribers", own, "fail")
    before = [entry("one", declared=True), entry("two", declared=True)]
    assert await registry.declare("subscribers", before) == [0, 0]
    after = [entry("two", "new", declared=True), entry("three", declared=True)]
    assert await registry.declare("subscribers", after) == [0, 0]
    assert await all_of(registry) == {own, *after}
    await registry.declare("subscribers", [])
    assert await all_of(registry) == {own}


async def test_a_file_and_the_run_time_do_not_replace_each_other(registry: Registry) -> None:
    await registry.register("subscribers", entry("own"), "fail")
    declared = [entry("one", declared=True)]
    await registry.declare("subscribers", declared)
    for if_exists in ("replace", "keep", "fail"):
        assert await registry.register("subscribers", entry("one", "x"), if_exists) == EXISTS
    both = [entry("two", declared=True), entry("own", declared=True)]
    assert await registry.declare("subscribers", both) == [0, EXISTS]
    assert await registry.unregister("subscribers", "one") == 3
    assert await all_of(registry) == {entry("own"), *declared}


async def test_what_cannot_be_read_is_left_out_and_the_rest_goes_on(
    registry: Registry, bucket: Bucket, caplog: pytest.LogCaptureFixture
) -> None:
    good = Subscriber(name="good", topic="t", url="http://h/")
    newer = good.definition.replace("{", '{"added_later": 1, ', 1).replace("good", "newer")
    wrong = (
        *(
            {"concurrency": "3"},
            {"topic": None},
            {"url": None},
            {"timeout_ms": 0.5},
            {"order": "x"},
        ),
        *({"retry_ms": None}, {"retry_ms": ["x"]}, {"retry_ms": [math.inf]}),
        *({"headers": 5}, {"method": 5}, {"secret": 5}),
    )
    damaged = [json.dumps(json.loads(good.definition) | each) for each in wrong]
    bad = {f"bad{n}": text for n, text in enumerate(['{"a": 1}', "[]", *damaged])}
    for name, text in {"good": good.definition, "newer": newer, **bad}.items():
        await registry.register("subscribers", Entry(name, text), "fail")
    found = await Subscribers(bucket.store).all()
    assert [one.name for one in found] == ["good", "newer"]
    for name in bad:
        assert f"'{name}' in the store cannot be read" in caplog.text


async def test_a_very_one_is_dropped_unless_it_was_replaced(registry: Registry) -> None:
    old, new = entry("one", "old"), entry("one", "new")
    await registry.register("subscribers", new, "fail")
    assert await registry.unregister("subscribers", "one", old.definition) == 2
    assert await registry.unregister("subscribers", "one", new.definition) == 0
    await registry.declare("subscribers", [entry("two", declared=True)])
    declared = entry("two", declared=True).definition
    assert await registry.unregister("subscribers", "two", declared) == 0
    assert await all_of(registry) == set()


@pytest.mark.parametrize("text", ["no JSON", "1", "null", "[]"])
async def test_what_cannot_be_read_keeps_nothing_from_being_declared_and_can_be_dropped(
    bucket: Bucket, registry: Registry, text: str
) -> None:
    await bucket.redis.hset(bucket.key("subscribers"), "bad", text)
    assert await registry.declare("subscribers", [entry("one", declared=True)]) == [0]
    assert await registry.declare("subscribers", []) == []
    assert await registry.unregister("subscribers", "bad") == 0
    assert await all_of(registry) == set()
