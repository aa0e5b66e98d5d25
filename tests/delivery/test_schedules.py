"""Schedules push jobs at their times, once among all servers, and continue after a crash where they were."""

import asyncio
import calendar
import time
from contextlib import closing
from typing import Any

import pytest

from delayqueue.tasks import cancel_all
from tests.api_client import NO_SUCH_JOB, Api, Json, open_api
from tests.processes import ProcessError, Processes, StoreServer
from tests.waiting import until


async def taken(api: Api, topic: str, *, within_s: float) -> list[str]:
    """The ids of the jobs that come within this time; each is finished."""
    ids: list[str] = []
    end = time.monotonic() + within_s
    while (left_s := end - time.monotonic()) > 0:
        await take(api, topic, ids, wait_s=left_s)
    return ids


async def take(api: Api, topic: str, ids: list[str], *, wait_s: float) -> None:
    """Finish the next jobs that come, and note their ids."""
    for job in (await api.pop(topic, timeout=wait_s, count=100)).ok():
        assert job["due"] <= time.time()
        ids.append(job["id"])
        (await api.finish(job["id"], receipt=job["receipt"])).ok()


async def consume(api: Api, topic: str, ids: list[str]) -> None:
    """Take jobs until cancelled."""
    while True:
        await take(api, topic, ids, wait_s=10)


def seconds_of(ids: list[str], name: str) -> list[int]:
    """The unix seconds of occurrences, from the ids of their jobs."""
    times = [job_id.removeprefix(f"{name}@").partition("#")[0] for job_id in ids]
    return [calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ")) for text in times]


def schedule(topic: str, /, **fields: Any) -> Json:
    return {"name": f"{topic}/s", "topic": topic, "every": 1} | fields


async def test_a_job_comes_at_each_time_with_its_body(api: Api, topic: str) -> None:
    asked_at = time.time()
    given = schedule(topic, body="排队", ttr=77, catch_up="all")  # a busy server may be late
    answer = (await api.call("/schedule", given)).ok()
    assert asked_at < answer["next"] <= time.time() + 1
    job = (await api.pop(topic, timeout=20)).ok()
    assert (job["body"], job["due"]) == ("排队", answer["next"])
    assert time.time() >= job["due"]
    assert (await api.get(job["id"])).ok()["ttr"] == 77
    (await api.call("/unschedule", {"name": f"{topic}/s"})).ok()
    (await api.call("/purge", {"topic": topic})).ok()  # what came since
    assert await taken(api, topic, within_s=2.2) == []


async def test_a_schedule_is_shown_with_its_next_time(api: Api, topic: str) -> None:
    given = schedule(
        topic, every=None, cron="30 9 * * MON-FRI", tz="Asia/Shanghai", catch_up="skip", body="x"
    )
    next_s = (await api.call("/schedule", given)).ok()["next"]
    assert (await api.call("/schedules", {"topic": topic})).ok() == [
        {
            "name": f"{topic}/s",
            "topic": topic,
            "cron": "30 9 * * MON-FRI",
            "every": None,
            "tz": "Asia/Shanghai",
            "body": "x",
            "ttr": 60,
            "catch_up": "skip",
            "paused": False,
            "next": next_s,
            "declared": False,
        }
    ]


async def test_a_name_belongs_to_one_schedule(api: Api, topic: str) -> None:
    yearly = schedule(topic, every=None, cron="0 0 1 1 *")
    other = schedule(topic, every=None, cron="0 0 1 7 *")
    first = (await api.call("/schedule", yearly)).ok()
    assert (await api.call("/schedule", yearly)).ok() == first
    assert f"{topic}/s: another schedule" in (await api.call("/schedule", other)).refused(5)
    assert (await api.call("/schedule", other | {"if_exists": "keep"})).ok() == first
    assert (await api.call("/schedule", other | {"if_exists": "replace"})).ok() != first
    (await api.call("/unschedule", {"name": f"{topic}/s"})).ok()
    assert (await api.call("/unschedule", {"name": f"{topic}/s"})).refused(2) == (
        f"{topic}/s: no such schedule"
    )


async def test_the_jobs_of_a_schedule_are_of_its_group(
    processes: Processes, redis_server: StoreServer, topic: str
) -> None:
    server = processes.server(redis_server)
    async with open_api(server.url) as api:
        (await api.call("/schedule", schedule(topic, group="customer-7"))).ok()
        came = (await api.pop(topic, timeout=10)).ok()
        now = (await api.call("/run-schedule", {"name": f"{topic}/s"})).ok()["id"]
        assert came["group"] == (await api.get(now)).ok()["group"] == "customer-7"
        change = {"name": f"{topic}/s", "group": "customer-8", "if_exists": "change"}
        (await api.call("/schedule", change)).ok()
        [shown] = (await api.call("/schedules", {"topic": topic})).ok()
        assert (shown["group"], shown["every"]) == ("customer-8", 1)
        (await api.call("/schedule", change | {"group": None})).ok()
        [shown] = (await api.call("/schedules", {"topic": topic})).ok()
        assert "group" not in shown


async def test_a_schedule_whose_name_begins_with_braces_pushes_with_several_buckets(
    processes: Processes, redis_server: StoreServer, topic: str
) -> None:
    """What stands in the braces of an id decides the bucket: a number behind them changes nothing."""
    server = processes.server(redis_server, bucket_size=3)
    async with open_api(server.url) as api:
        for name in "abcdef":
            (await api.call("/schedule", schedule(topic, name=f"{{{topic}{name}}}s"))).ok()
        ids: set[str] = set()
        while len({job_id.partition("}")[0].lstrip("#0123456789") for job_id in ids}) < 6:
            ids |= {job["id"] for job in (await api.pop(topic, timeout=10, count=100)).ok()}


async def test_a_schedule_has_no_group_in_a_store_with_several_buckets(
    processes: Processes, redis_server: StoreServer, topic: str
) -> None:
    """Its jobs go into the bucket of the schedules, and those of a group into that of the group."""
    server = processes.configured(
        f"[schedule s]\ntopic = {topic}\nevery = 1h\n", redis_server, bucket_size=3, language="en"
    )
    server.start()
    with closing(server):
        async with open_api(server.url) as api:
            refused = await api.call("/schedule", schedule(topic, group="customer-7"))
            why = f"schedule {topic}/s: group: only with bucket_size = 1"
            assert refused.refused().startswith(why)
            [declared] = (await api.call("/schedules", {"topic": topic})).ok()
            assert declared["name"] == "s"
    with pytest.raises(ProcessError) as caught:
        processes.configured(
            "[schedule s]\ntopic = t\nevery = 1h\ngroup = g\n", redis_server, bucket_size=3
        ).start()
    assert "schedule s: group: only with bucket_size = 1" in str(caught.value)


async def test_two_servers_push_each_occurrence_once_though_one_is_killed(
    processes: Processes, valkey_server: StoreServer, topic: str
) -> None:
    database = valkey_server.new_database()
    one, other = (
        processes.server(valkey_server, redis__db=database, bucket_size=4) for _ in range(2)
    )
    async with open_api(one.url) as api, open_api(other.url) as its:
        for name in ("x", "y", "z"):
            given = schedule(topic, name=name, topic=f"{topic}-{name}", catch_up="all")
            (await api.call("/schedule", given)).ok()
        comes: dict[str, list[str]] = {"x": [], "y": [], "z": []}
        consumers = [
            asyncio.create_task(consume(its, f"{topic}-{name}", ids)) for name, ids in comes.items()
        ]
        await until(lambda: all(len(ids) >= 2 for ids in comes.values()))
        one.kill()
        wanted = {name: len(ids) + 2 for name, ids in comes.items()}
        await until(lambda: all(len(ids) >= wanted[name] for name, ids in comes.items()))
        await cancel_all(consumers)
    for name, ids in comes.items():
        times = seconds_of(ids, name)
        assert times == list(range(times[0], times[0] + len(times))), "each once, none left out"
    assert other.stop() == 0


async def test_the_next_ten_times_are_told_in_the_zone_before_it_is_saved(api: Api) -> None:
    asked = {"cron": "30 1 * * *", "tz": "Europe/London"}
    told = (await api.call("/preview-schedule", asked)).ok()
    assert len(told) == 10
    assert told[0]["at"] > time.time()
    assert {one["local"][10:19] for one in told} == {" 01:30:00"}
    rare = (await api.call("/preview-schedule", {"cron": "0 0 29 2 *", "tz": "UTC"})).ok()
    assert {one["local"][4:] for one in rare} == {"-02-29 00:00:00+00:00"}


async def test_a_schedule_is_run_now_and_its_own_times_stay(api: Api, topic: str) -> None:
    yearly = schedule(topic, every=None, cron="0 0 1 1 *", body="b", ttr=9)
    next_s = (await api.call("/schedule", yearly)).ok()
    job_id = (await api.call("/run-schedule", {"name": f"{topic}/s"})).ok()["id"]
    job = (await api.pop(topic, timeout=20)).ok()
    assert (job["id"], job["body"]) == (job_id, "b")
    assert job_id.startswith(f"{topic}/s@")
    assert (await api.get(job_id)).ok()["ttr"] == 9
    (shown,) = (await api.call("/schedules", {"topic": topic})).ok()
    assert shown["next"] == next_s["next"]
    (await api.call("/unschedule", {"name": f"{topic}/s"})).ok()
    assert "no such schedule" in (await api.call("/run-schedule", {"name": f"{topic}/s"})).refused(
        2
    )


async def pages(api: Api, path: str, kind: str, **asked: object) -> list[list[str]]:
    """The names on each page."""
    found, cursor = list[list[str]](), ""
    while True:
        page = (await api.call(path, asked | {"cursor": cursor})).ok()
        found.append([one["name"] for one in page[kind]])
        cursor = page["cursor"]
        if not cursor:
            return found


async def test_schedules_are_listed_by_pages(api: Api, topic: str) -> None:
    names = [f"{topic}/{n}" for n in range(5)]
    for each in names:
        (await api.call("/schedule", {"name": each, "topic": topic, "every": 3600})).ok()
    listed = await pages(api, "/schedules", "schedules", topic=topic, limit=2)
    assert listed == [names[:2], names[2:4], names[4:]]
    first = (await api.call("/schedules", {"topic": topic, "limit": 2})).ok()
    (await api.call("/unschedule", {"name": names[1]})).ok()
    (await api.call("/schedule", {"name": f"{topic}/0+", "topic": topic, "every": 3600})).ok()
    rest = {"topic": topic, "limit": 9, "cursor": first["cursor"]}
    assert [one["name"] for one in (await api.call("/schedules", rest)).ok()["schedules"]] == (
        names[2:]
    )
    for wrong in ({"cursor": first["cursor"]}, {"limit": 2, "cursor": first["cursor"]}):
        assert "cursor" in (await api.call("/schedules", wrong)).refused()
    assert (await api.call("/schedules", {"limit": 1, "cursor": "x"})).refused()
    for each in (f"{topic}/0+", names[0], *names[2:]):
        (await api.call("/unschedule", {"name": each})).ok()


async def test_subscribers_are_listed_by_pages_in_calling_order(api: Api, topic: str) -> None:
    names = [f"{topic}/{n}" for n in (3, 1, 2)]
    for order, each in enumerate(names):
        asked = {"name": each, "topic": topic, "order": order, "url": "https://example.com/"}
        (await api.call("/subscribe", asked)).ok()
    asked = {"topic": topic, "limit": 2, "calls": True}
    assert await pages(api, "/subscribers", "subscribers", **asked) == [names[:2], names[2:]]
    for each in names:
        (await api.call("/unsubscribe", {"name": each})).ok()


async def test_a_schedule_changes_only_as_asked(api: Api, topic: str) -> None:
    asked = {"name": topic, "topic": topic, "cron": "30 9 * * *", "tz": "Asia/Shanghai"}
    (await api.call("/schedule", asked | {"body": "all", "ttr": 90})).ok()
    change = {"name": topic, "if_exists": "change"}
    (await api.call("/schedule", change | {"paused": True})).ok()
    [paused] = (await api.call("/schedules", {"topic": topic})).ok()
    assert (paused["paused"], paused["next"], paused["body"], paused["ttr"]) == (
        *(True, None),
        *("all", 90),
    )
    (await api.call("/schedule", change | {"paused": False, "cron": "0 7 * * *"})).ok()
    [shown] = (await api.call("/schedules", {"topic": topic})).ok()
    assert (shown["cron"], shown["tz"], shown["body"]) == ("0 7 * * *", "Asia/Shanghai", "all")
    assert shown["next"] is not None
    (await api.call("/schedule", change | {"every": "15m"})).ok()
    [shown] = (await api.call("/schedules", {"topic": topic})).ok()
    assert (shown["cron"], shown["every"], shown["tz"]) == ("", 900, "UTC")
    zone = await api.call("/schedule", change | {"tz": "Europe/Paris"}, {"Accept-Language": "en"})
    assert zone.refused().startswith("tz: is only for cron")
    assert (await api.call("/schedules", {"topic": topic})).ok() == [shown]
    (await api.call("/schedule", change | {"tz": "UTC"})).ok()
    (await api.call("/schedule", change | {"cron": "* * * * *", "every": 5})).refused()
    (await api.call("/schedule", change | {"name": f"{topic}-unknown"})).refused(NO_SUCH_JOB)
    assert "topic" in (await api.call("/schedule", {"name": topic, "every": 5})).refused()
    (await api.call("/unschedule", {"name": topic})).ok()


async def test_changes_at_the_same_time_are_all_made(api: Api, topic: str) -> None:
    (await api.call("/schedule", {"name": topic, "topic": topic, "every": 3600})).ok()
    changes: list[Json] = [{"ttr": 77}, {"body": "b"}, {"paused": True}, {"catch_up": "all"}]
    change: Json = {"name": topic, "if_exists": "change"}
    answers = [api.call("/schedule", change | each) for each in changes]
    for answer in await asyncio.gather(*answers):
        answer.ok()
    [shown] = (await api.call("/schedules", {"topic": topic})).ok()
    for each in changes:
        assert each.items() <= shown.items()
    (await api.call("/unschedule", {"name": topic})).ok()


async def test_a_subscriber_changes_only_as_asked_and_keeps_its_secret(
    api: Api, topic: str
) -> None:
    asked = {"name": topic, "topic": topic, "url": "https://example.com/a", "timeout": 7}
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    (await api.call("/subscribe", asked | {"secret": secret})).ok()
    change = {"name": topic, "if_exists": "change"}
    (await api.call("/subscribe", change | {"url": "https://example.com/b"})).ok()
    [shown] = (await api.call("/subscribers", {"topic": topic})).ok()
    assert (shown["url"], shown["timeout"], shown["signed"]) == ("https://example.com/b", 7, True)
    (await api.call("/subscribe", change | {"name": f"{topic}-unknown"})).refused(NO_SUCH_JOB)
    (await api.call("/subscribe", change | {"url": "ftp://example.com/"})).refused()
    assert "url" in (await api.call("/subscribe", {"name": "x", "topic": topic})).refused()
    (await api.call("/unsubscribe", {"name": topic})).ok()
