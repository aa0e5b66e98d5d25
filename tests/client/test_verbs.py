"""Every verb of both clients, against a real server."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from delayqueue.client import (
    HeldBy,
    Invalid,
    Job,
    JobExists,
    Limits,
    NoSuchJob,
    Schedule,
    StaleReceipt,
    Subscriber,
    TopicFull,
    WrongState,
)
from delayqueue.config.build import build
from delayqueue.domain.job import State
from tests.client.conftest import Caller
from tests.waiting import until_async

HOUR = timedelta(hours=1)


async def test_a_job_goes_through_its_life(client: Caller, topic: str) -> None:
    job_id = await client.push(topic, "Hello", ttr=30, delay=0.05)
    job = await client.pop(topic, wait=20)
    assert (job.topic, job.id, job.body, job.attempt) == (topic, job_id, "Hello", 1)
    assert job.due <= time.time()
    await client.finish(job)
    assert await client.get(job_id) is None


async def test_a_pop_of_nothing_is_none(client: Caller, topic: str) -> None:
    assert await client.pop(topic, wait=0) is None
    assert await client.pop_many(topic, count=5, wait=0) == []


async def test_a_get_waits_for_the_end(client: Caller, topic: str) -> None:
    job_id = await client.push(topic, retain=HOUR)
    began = time.monotonic()
    assert (await client.get(job_id, wait="0.3s")).state == "ready"
    assert time.monotonic() - began >= 0.3
    await client.finish(await client.pop(topic, wait=20), message="42")
    ended = await client.get(job_id, wait=30)
    assert (ended.state, ended.message) == ("finished", "42")


async def test_all_options_of_a_job_arrive(client: Caller, topic: str) -> None:
    due = datetime.now(UTC) + HOUR
    job_id = await client.push(
        topic,
        "x",
        due=due,
        ttr=timedelta(minutes=2),
        tags=["order:1"],
        retry=["15s", 60, timedelta(minutes=2)],
        if_exists="keep",
        retain=HOUR,
        expire=60,
    )
    job = await client.get(job_id)
    assert (job.state, job.ttr, job.tags) == ("delayed", 120, ("order:1",))
    assert abs(job.due - due.timestamp()) < 0.01
    await client.delete(job_id)
    ended = await client.get(job_id)
    assert ended.state == "cancelled"  # kept, as `retain` says


@pytest.mark.parametrize("retry", ["wechat", {"max": 1, "base": "1h"}, ["1h"]])
async def test_a_retry_schedule_is_kept(client: Caller, topic: str, retry: Any) -> None:
    await client.push(topic, retry=retry)
    job = await client.pop(topic, wait=20)
    assert await client.release(job, message="no luck") > time.time() + 1
    details = await client.get(job.id)
    assert (details.state, details.message) == ("delayed", "no luck")
    assert [attempt.message for attempt in details.attempts] == ["no luck"]


async def test_an_empty_id_is_no_id(client: Caller, topic: str) -> None:
    with pytest.raises(Invalid, match="id: must not be empty"):
        await client.push(topic, id="")
    assert await client.pop(topic, wait=0) is None


async def test_a_batch_says_what_became_of_each(client: Caller, topic: str) -> None:
    outcomes = await client.push_many([Job(topic=topic, id="a", ttr=0), Job(topic=topic, body="b")])
    assert [outcome.code for outcome in outcomes] == [1, 0]
    assert "ttr" in outcomes[0].message
    (job,) = await client.pop_many(topic, count=10, wait=20)
    assert [one.code for one in await client.finish_many([job.id])] == [0]
    assert await client.get_many([job.id]) == [None]


async def test_a_late_worker_changes_nothing(client: Caller, topic: str) -> None:
    await client.push(topic)
    late = await client.pop(topic, wait=20)
    await client.release(late, delay=0)
    present = await client.pop(topic, wait=20)
    for verb in (client.finish, client.touch, client.release, client.bury):
        with pytest.raises(StaleReceipt):
            await verb(late)
    assert await client.touch(present, ttr=50) > time.time() + 40
    await client.touch(present, progress=40, message="page 4 of 10")
    details = await client.get(present.id)
    assert (details.progress.percent, details.progress.message) == (40, "page 4 of 10")
    await client.finish(present)
    with pytest.raises(NoSuchJob):
        await client.finish(present)


async def test_a_job_says_which_one_its_group_waits_for(client: Caller, topic: str) -> None:
    await client.limit(topic, group_concurrency=1)
    first, second = [await client.push(topic, group=topic, ttr=600) for _ in range(2)]
    held = await client.pop(topic, wait=20)
    assert held.id == first
    deadline = await client.touch(held)
    details = await client.get(second)
    assert details.held_by == HeldBy(first, State.RESERVED, deadline)
    found = await client.find(topic=topic, state="ready")
    assert [(one.id, one.held_by) for one in found.jobs] == [(second, details.held_by)]
    assert (await client.get(first)).held_by is None


async def test_a_job_is_buried_and_kicked(client: Caller, topic: str) -> None:
    await client.push(topic)
    job = await client.pop(topic, wait=20)
    await client.bury(job, message="broken")
    page = await client.list_jobs(topic, state="buried")
    assert [(one.id, one.message) for one in page.jobs] == [(job.id, "broken")]
    await client.kick(job.id, body={"total": 3})
    again = await client.pop(topic, wait=20)
    assert (again.attempt, again.body) == (2, '{"total":3}')
    with pytest.raises(WrongState):
        await client.kick(job.id)


async def test_a_delayed_job_is_rescheduled(client: Caller, topic: str) -> None:
    job_id = await client.push(topic, delay=HOUR)
    assert await client.reschedule(job_id, due=datetime.now(UTC) + 2 * HOUR) > time.time() + 7000
    await client.reschedule(job_id, delay=0)
    assert (await client.pop(topic, wait=20)).id == job_id


async def test_jobs_are_listed_foretold_and_taken_by_range(client: Caller, topic: str) -> None:
    now = time.time()
    await client.push_many(
        [Job(topic=topic, id=f"{topic}-{n}", due=now + 100 + n) for n in range(3)]
    )
    page = await client.list_jobs(topic, limit=2)
    rest = await client.list_jobs(topic, limit=2, cursor=page.cursor)
    assert [job.id[-1] for job in page.jobs + rest.jobs] == ["0", "1", "2"]
    forecast = await client.forecast(topic, start=now, end=now + 200, step=100)
    assert sum(forecast.counts) == 3
    taken = await client.take(topic, start=now, end=now + 101.5)
    assert [job.id[-1] for job in taken] == ["0", "1"]


async def test_dead_letters_come_by_reason(client: Caller, topic: str) -> None:
    job_id = await client.push(topic)
    await client.bury(job_id, message="no such account")
    page = await client.buried(topic, ids=5)
    [group] = page.groups
    assert (group.reason, group.count, group.ids) == ("no such account", 1, [job_id])
    assert (group.topics, page.cursor) == ({topic: 1}, "")


async def test_a_topic_is_limited_and_let_go(client: Caller, topic: str) -> None:
    limits = await client.limit(topic, rate=20, concurrency=8)
    assert limits == Limits(rate=20, burst=2, concurrency=8, declared=False)
    [counts] = [each for each in await client.topics() if each.topic == topic]
    assert counts.limit == limits
    assert (await client.limit(topic, rate=None)).concurrency == 8
    assert await client.limit(topic, concurrency=None) == Limits(None, None, None, declared=False)
    assert (await client.limit(topic, buried_retain=90)).buried_retain == 90
    assert (await client.limit(topic, buried_retain=None)).buried_retain is None
    assert (await client.limit(topic, buried_to=f"{topic}-dead")).buried_to == f"{topic}-dead"
    assert (await client.limit(topic, buried_to=None)).buried_to is None
    limits = await client.limit(topic, max_jobs=1, when_full="drop_oldest")
    assert (limits.max_jobs, limits.when_full) == (1, "drop_oldest")
    first = await client.push(topic, retain=60)
    second = await client.push(topic)
    assert (await client.get(first)).state == "dropped"
    assert (await client.limit(topic, when_full=None)).when_full is None
    with pytest.raises(TopicFull, match="topic full: 1 jobs"):
        await client.push(topic)
    assert (await client.limit(topic, max_jobs=None)).max_jobs is None
    await client.push(topic, id=second)


async def test_a_topic_is_paused_counted_and_purged(client: Caller, topic: str) -> None:
    await client.pause(topic, length=60)
    await client.push(topic, tags=[topic])
    assert await client.pop(topic, wait=0) is None
    (counts,) = [one for one in await client.topics() if one.topic == topic]
    assert (counts.ready, bool(counts.paused)) == (1, True)
    await client.resume(topic)
    assert await client.cancel(topic) == 1
    await client.push(topic, delay=60)
    assert await client.kick_topic(topic) == 0
    assert await client.kick_topic(topic, state="delayed") == 1
    assert await client.purge(topic) == 1


async def test_topics_are_found_by_name(client: Caller, topic: str) -> None:
    for each in ("a", "b", "c"):
        await client.push(f"{topic}-{each}", delay=HOUR)
    names = [f"{topic}-{each}" for each in ("a", "c")]
    assert [one.topic for one in await client.topics(*names)] == names
    assert len(await client.topics(match=topic, limit=2)) == 2


async def test_many_jobs_are_kicked_at_once(client: Caller, topic: str) -> None:
    job_id = await client.push(topic, delay=HOUR)
    outcomes = await client.kick_many([job_id, "never-pushed"])
    assert [outcome.code for outcome in outcomes] == [0, NoSuchJob.code]
    assert (await client.pop(topic, wait=20)).id == job_id


async def test_the_jobs_of_a_tag_are_moved_together(client: Caller, topic: str) -> None:
    ids = [await client.push(topic, delay=HOUR, tags=[topic]) for _ in range(2)]
    assert await client.reschedule_tag(topic, delay=2 * HOUR) == 2
    assert await client.reschedule_tag(topic, topic="another", delay=HOUR) == 0
    outcomes = await client.reschedule_many([*ids, "never-pushed"], delay=HOUR)
    assert [outcome.code for outcome in outcomes] == [0, 0, NoSuchJob.code]
    was = (await client.get(ids[0])).due
    assert await client.reschedule_tag(topic, by="-10m") == 2
    assert await client.reschedule(ids[0], by=timedelta(seconds=60.5), priority=5) == pytest.approx(
        was - 539.5, abs=0.01
    )
    assert (await client.reschedule_many(ids[:1], priority=6))[0].code == 0
    assert (await client.get(ids[0])).priority == 6
    assert await client.kick_tag(topic) == 0
    assert await client.kick_tag(topic, topic=topic, state="delayed") == 2
    assert len(await client.pop_many(topic, count=2, wait=20)) == 2


async def test_a_subscriber_is_registered_shown_and_dropped(client: Caller, topic: str) -> None:
    name, url = f"{topic}/invoice", "https://example.com/invoice"
    for _ in range(2):  # registering the same one again changes nothing
        await client.subscribe(
            *(name, topic, url),
            order=10,
            timeout=timedelta(seconds=2.5),
            retry=["1m", HOUR],
            concurrency=3,
            secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        )
    assert await client.subscribers(topic) == [
        Subscriber(
            *(name, topic, 10, url, ""),
            timeout=2.5,
            retry=(60, 3600),
            concurrency=3,
            signed=True,
            declared=False,
        )
    ]
    with pytest.raises(JobExists, match="another subscriber"):
        await client.subscribe(name, topic, f"{url}/2")
    await client.subscribe(name, topic, f"{url}/2", if_exists="replace")
    assert (name, f"{url}/2") in [(one.name, one.url) for one in await client.subscribers()]
    await client.unsubscribe(name)
    with pytest.raises(NoSuchJob, match="no such subscriber"):
        await client.unsubscribe(name)


@pytest.mark.parametrize(
    ("times", "shown"),
    [
        ({"every": timedelta(days=2)}, {"cron": "", "every": 172800, "tz": "UTC"}),
        ({"every": "2d"}, {"cron": "", "every": 172800, "tz": "UTC"}),
        (
            {"cron": "30 9 1 * *", "tz": "Asia/Shanghai"},
            {"cron": "30 9 1 * *", "every": None, "tz": "Asia/Shanghai"},
        ),
    ],
    ids=["a length", "a text", "a calendar"],
)
async def test_a_schedule_is_registered_shown_and_dropped(
    client: Caller, topic: str, times: dict[str, Any], shown: dict[str, Any]
) -> None:
    coming = await client.schedule(
        topic, topic, "all", **times, ttr=timedelta(minutes=5), catch_up="skip"
    )
    assert coming > time.time()
    expected = Schedule(
        topic, topic, **shown, body="all", ttr=300, catch_up="skip", next=coming, declared=False
    )
    assert await client.schedules(topic) == [expected]
    with pytest.raises(JobExists, match="another schedule"):
        await client.schedule(topic, topic, every=60)
    assert await client.schedule(topic, topic, every=HOUR, if_exists="replace") > time.time()
    assert 3600 in [one.every for one in await client.schedules()]
    await client.unschedule(topic)
    with pytest.raises(NoSuchJob, match="no such schedule"):
        await client.unschedule(topic)


async def test_the_servers_and_ones_own_rights_are_told(client: Caller, topic: str) -> None:
    await client.push(topic, delay=HOUR)
    stats = await client.stats()
    assert stats.delayed >= 1
    assert topic in {one.topic for one in stats.busiest} or len(stats.busiest) == 8
    assert [server.version for server in stats.servers] == [build()]
    assert stats.store.memory > 0
    access = await client.whoami()
    assert (access.roles, access.topics) == (["admin", "call", "consume", "produce", "view"], ["*"])
    assert {"/push", "/whoami"} <= {*access.endpoints}
    assert access.user == ""  # a proxy tells names of people


async def test_threads_may_share_a_client(client: Caller, topic: str) -> None:
    await asyncio.gather(*(client.push(topic, str(number)) for number in range(40)))

    async def all_there() -> bool:
        (counts,) = [one for one in await client.topics() if one.topic == topic]
        return bool(counts.ready == 40)

    await until_async(all_there)
