"""Data of the previous version: it reads as before, verbs work in every state, and nothing is left broken."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final

import pytest
import pytest_asyncio
from redis.asyncio import Redis

from delayqueue.domain.schedule import Schedule
from delayqueue.store.keys import BucketKeys
from faults.bed import assert_fsck_finds_nothing
from tests.api_client import OK, Api, open_api
from tests.delivery.receiver import Answer, Receiver, receiving
from tests.processes import LOOPBACK, Processes, StoreServer
from tests.store.conftest import connect
from tests.store.invariants import violations
from tests.upgrade.fill import BODY, LIMIT, TAG, TRACE
from tests.upgrade.filled import LAYOUTS, Filled, Layout, listed, said
from tests.waiting import until_async

pytestmark = pytest.mark.asyncio(loop_scope="module")

Json = dict[str, Any]

WAIT_S: Final = 60
GONE: Final = 2
STALE: Final = 4
STORES: Final = ("redis", "redis_without_functions", "valkey")
# --every-store shows all layouts on all stores
USUAL: Final = {"zset-1": "redis", "zset-4": "valkey", "wheel-4": "redis_without_functions"}
FILLED: Final = [
    pytest.param(
        (layout, store),
        id=f"{layout.name}-{store}",
        marks=() if USUAL[layout.name] == store else pytest.mark.seldom,
    )
    for layout in LAYOUTS
    for store in STORES
]


@dataclass(frozen=True)
class Reading:
    """The answers of today's server before any change, without what is over soon."""

    jobs: Json
    topics: dict[str, Json]
    lists: dict[str, list[str]]
    subscribers: list[Json]
    schedules: list[Json]

    @classmethod
    async def of(cls, api: Api, filled: Filled) -> "Reading":
        topics = {
            topic["topic"]: topic
            for topic in (await api.call("/topics", {})).ok()
            if not topic["topic"].startswith("soon-")
        }
        return cls(
            await said(api, [i for i in filled.answer("/get") if not i.startswith("soon/")]),
            topics,
            {name: await listed(api, name) for name in topics},
            (await api.call("/subscribers", {})).ok(),
            (await api.call("/schedules", {})).ok(),
        )


@dataclass(frozen=True)
class Upgraded:
    """A store that the earlier version has filled, with today's server on it."""

    layout: Layout
    filled: Filled
    found: Reading
    api: Api
    redis: Redis
    receiver: Receiver

    async def violations(self) -> list[str]:
        buckets = [
            BucketKeys.of(number + 1, "dq_bucket_%d", "dq_queue_%s")
            for number in range(self.layout.buckets)
        ]
        return [
            f"{keys.tag}: {sentence}"
            for keys in buckets
            for sentence in await violations(
                self.redis, keys, self.layout.wheel_slots, among=buckets
            )
        ]

    async def job(self, job_id: str) -> Json:
        return (await said(self.api, [job_id]))[job_id]

    async def state(self, job_id: str) -> str | None:
        return (await self.job(job_id)).get("state")

    async def until_is(self, job_id: str, state: str | None) -> None:
        async def is_so() -> bool:
            return await self.state(job_id) == state

        await until_async(is_so)

    async def by_receipt(self, verb: str, job_id: str, **options: object) -> Any:
        """With the receipt that the earlier version gave out."""
        request = {"id": job_id, "receipt": self.filled.receipts[job_id]}
        return (await self.api.call(verb, request | options)).ok()

    async def pop_all(self, topic: str, least: int) -> dict[str, Json]:
        """All jobs that can be popped at once; so many are waited for."""
        found: dict[str, Json] = {}
        while jobs := (
            await self.api.pop(topic, count=100, timeout=0 if len(found) >= least else WAIT_S)
        ).ok():
            found |= {job["id"]: job for job in jobs}
        return found

    async def topic(self, name: str) -> Json:
        [found] = (await self.api.call("/topics", {"topics": [name]})).ok()
        return dict(found)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=FILLED)
async def upgraded(request: pytest.FixtureRequest, processes: Processes) -> AsyncIterator[Upgraded]:
    """The tests share it, each has jobs of its own."""
    layout, name = request.param
    store: StoreServer = request.getfixturevalue(f"{name}_server")
    database = store.new_database()
    filled = Filled(layout)
    settings: Json = layout.settings() | {"redis.db": database}
    async with AsyncExitStack() as stack:
        receiver = await stack.enter_async_context(receiving())
        redis = await stack.enter_async_context(connect(store, database))
        await filled.load(redis, receiver.port)
        server = processes.server(store, webhook_allow=f"{LOOPBACK}/32", **settings)
        api = await stack.enter_async_context(open_api(server.url))
        found = await Reading.of(api, filled)
        there = Upgraded(layout, filled, found, api, redis, receiver)
        yield there
        server.stop()
        assert await there.violations() == []
        assert_fsck_finds_nothing(store.settings(database) | settings)


async def test_everything_reads_as_it_did(upgraded: Upgraded) -> None:
    """Except what was over soon after."""
    answer, found = upgraded.filled.answer, upgraded.found
    for job_id, job in found.jobs.items():
        assert _part(job, answer("/get")[job_id]) == answer("/get")[job_id]
    assert found.lists == {name: answer("/list")[name] for name in found.lists}
    before_by_name = {topic["topic"]: topic for topic in answer("/topics")}
    assert {name for name in before_by_name if not name.startswith("soon-")} == found.topics.keys()
    for name, topic in found.topics.items():
        assert _part(topic, before_by_name[name]) == before_by_name[name]
    for subscriber, before in zip(found.subscribers, answer("/subscribers"), strict=True):
        url = upgraded.receiver.url(before["name"])
        assert _part(subscriber, before) == before | {"url": url}
    for schedule, before in zip(found.schedules, answer("/schedules"), strict=True):
        assert _part(schedule, before) == before | {"next": schedule["next"]}
        # a server corrects the time of a calendar that was moved far beyond its own
        assert schedule["next"] >= min(before["next"], _next(before, upgraded.filled.time_ms))


def _next(schedule: Json, time_ms: int) -> float:
    """When it occurs for the first time after that."""
    every_ms = round((schedule["every"] or 0) * 1000)
    told = Schedule(name="", topic="", cron=schedule["cron"], tz=schedule["tz"], every_ms=every_ms)
    next_ms = told.after(time_ms)
    assert next_ms is not None
    return next_ms / 1000


def _part(found: Json, before: Json) -> Json:
    """The members that existed before; there may be newer ones."""
    return {
        name: _part(found[name], value) if isinstance(value, dict) else found[name]
        for name, value in before.items()
    }


async def test_jobs_that_are_reserved_can_be_ended_by_the_receipts_that_workers_have(
    upgraded: Upgraded,
) -> None:
    await upgraded.by_receipt("/finish", "held/finish", message="完成")
    assert await upgraded.state("held/finish") == "finished"
    await upgraded.by_receipt("/delete", "held/delete")
    assert await upgraded.state("held/delete") == "cancelled"
    await upgraded.by_receipt("/bury", "held/bury", message="no")
    assert await upgraded.state("held/bury") == "buried"
    deadline = (await upgraded.by_receipt("/touch", "held/touch", ttr=9))["deadline"]
    assert deadline > (await upgraded.job("held/touch"))["started"]
    await upgraded.by_receipt("/release", "held/release", message="later")
    again = (await upgraded.api.pop("held")).ok()
    assert (again["id"], again["attempt"]) == ("held/release", 2)
    receipt = upgraded.filled.receipts["held/release"]
    stale = await upgraded.api.finish("held/release", receipt=receipt)
    assert stale.code == STALE
    (await upgraded.api.finish("held/release", receipt=again["receipt"])).ok()
    assert (await upgraded.job("held/release"))["attempts"][0]["message"] == "later"


async def test_a_tag_finds_its_jobs_in_every_state(upgraded: Upgraded) -> None:
    jobs = (await upgraded.api.call("/list", {"tag": TAG})).ok()["jobs"]
    assert {job["state"] for job in jobs} == {"delayed", "ready", "reserved", "buried"}
    assert (await upgraded.api.call("/cancel", {"tag": TAG})).ok() == {"count": len(jobs)}
    receipt = upgraded.filled.receipts["tagged/reserved"]
    assert (await upgraded.api.finish("tagged/reserved", receipt=receipt)).code == GONE
    assert await upgraded.state("tagged/ready") == "cancelled"


async def test_delayed_and_buried_jobs_can_be_kicked_and_come_whole(upgraded: Upgraded) -> None:
    ids = ["mail/all", "mail/body", "buried/by-worker", "buried/by-schedule", "buried/unseen"]
    assert (await upgraded.api.call("/kick", {"ids": ids})).ok()["count"] == len(ids)
    popped = await upgraded.pop_all("mail,buried", len(ids))
    assert popped.keys() == {*ids}
    assert popped["mail/all"]["traceparent"] == TRACE
    assert {popped[job_id]["body"] for job_id in ids[:3]} == {BODY}
    assert popped["buried/by-schedule"]["attempt"] == 3
    receipt = popped["mail/all"]["receipt"]
    released = await upgraded.api.call("/release", {"id": "mail/all", "receipt": receipt})
    assert released.ok()["due"] > popped["mail/all"]["due"]
    (await upgraded.api.call("/reschedule", {"id": "mail/plain", "delay": 0.1})).ok()
    assert (await upgraded.api.pop("mail")).ok()["id"] in {"mail/plain", "mail/all"}


async def test_ready_jobs_come_and_those_that_are_gone_do_not(upgraded: Upgraded) -> None:
    popped = await upgraded.pop_all("ready", 4)
    assert {i: job["body"] for i, job in popped.items()} == {
        f"ready/{n}": f"第{n}" for n in range(4)
    }
    ids = [*popped]
    results = (await upgraded.api.call("/finish", {"ids": ids})).ok()
    assert {result["code"] for result in results} == {OK}
    assert {await upgraded.state(job_id) for job_id in ids} == {None}


async def test_a_retry_schedule_goes_on_where_it_was(upgraded: Upgraded) -> None:
    """A job that a worker held when the servers were replaced fails when its TTR is over."""
    await upgraded.until_is("soon/delayed", "delayed")
    job = await upgraded.job("soon/delayed")
    assert [each["message"] for each in job["attempts"]] == ["first", "ttr expired"]
    assert job["due"] > job["attempts"][-1]["ended"] + 6 * 3600
    await upgraded.until_is("soon/buried", "buried")
    await upgraded.until_is("soon/ready", "ready")
    popped = (await upgraded.api.pop("soon-ready")).ok()
    assert popped["attempt"] == 2
    stale = await upgraded.api.finish("soon/ready", receipt=upgraded.filled.receipts["soon/ready"])
    assert stale.code == STALE
    (await upgraded.api.finish("soon/ready", receipt=popped["receipt"])).ok()


async def test_what_is_over_meanwhile_is_done_at_once(upgraded: Upgraded) -> None:
    due = (await upgraded.api.pop("soon-due")).ok()
    assert (due["id"], due["body"], due["attempt"]) == ("soon/due", BODY, 1)
    assert (await upgraded.api.pop("soon-resumed")).ok()["id"] == "soon/resumed"
    await upgraded.until_is("soon/expired", "expired")
    await upgraded.until_is("soon/expired-early", "expired")
    await upgraded.until_is("soon/dropped", None)


async def test_pauses_and_limits_hold(upgraded: Upgraded) -> None:
    for topic, job_id in (("paused", "paused/1"), ("paused-for-hours", "paused/2")):
        assert await upgraded.pop_all(topic, 0) == {}
        (await upgraded.api.call("/resume", {"topic": topic})).ok()
        assert (await upgraded.api.pop(topic)).ok()["id"] == job_id
    assert (await upgraded.topic("limited"))["reserved"] == LIMIT
    assert await upgraded.pop_all("limited", 0) == {}
    held = [job_id for job_id in upgraded.filled.receipts if job_id.startswith("limited/")]
    for job_id in held:
        await upgraded.by_receipt("/finish", job_id)
    assert len(await upgraded.pop_all("limited", LIMIT)) == LIMIT
    (await upgraded.api.call("/limit", {"topic": "slow", "rate": None})).ok()
    assert len(await upgraded.pop_all("slow", 1)) == 1


async def test_subscribers_go_on_with_those_that_are_not_done(upgraded: Upgraded) -> None:
    upgraded.receiver.says("second", Answer(200, "也好"))
    (await upgraded.api.call("/kick", {"id": "paid/half"})).ok()
    await upgraded.until_is("paid/half", "finished")
    job = await upgraded.job("paid/half")
    assert [result["message"] for result in job["results"]] == ["200 收到", "200 也好"]
    assert upgraded.receiver.paths == ["second"]
    assert upgraded.receiver.calls[0].is_signed()
    (await upgraded.api.push(topic="paid", id="paid/new", retain=60)).ok()
    await upgraded.until_is("paid/new", "finished")
    assert upgraded.receiver.paths == ["second", "first", "second"]


async def test_schedules_go_on(upgraded: Upgraded) -> None:
    job = (await upgraded.api.pop("soon-soon")).ok()
    assert job["body"] == BODY
    for schedule in (await upgraded.api.call("/schedules", {})).ok():
        assert schedule["next"] > job["due"]


async def test_a_result_that_is_kept_goes_with_a_new_push(upgraded: Upgraded) -> None:
    for state in ("finished", "cancelled", "expired"):
        job_id = f"ended/{state}"
        kept = await upgraded.api.push(topic="ended", id=job_id, if_exists="fail")
        assert kept.code == 5
        (await upgraded.api.push(topic="ended", id=job_id)).ok()
    assert len(await upgraded.pop_all("ended", 3)) == 3
    assert (await upgraded.api.call("/purge", {"topic": "ended"})).ok() == {"count": 3}
