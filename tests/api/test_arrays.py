"""Many jobs or ids in one request, and ids that the server makes."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import pytest

from delayqueue.errors import NoSuchJob, StaleReceipt
from tests.api.jobs import take
from tests.api_client import INVALID, OK, Api

Name = Callable[[str], str]

NO_SUCH_JOB: Final = NoSuchJob.code
STALE_RECEIPT: Final = StaleReceipt.code

BAD_MEMBERS: Final[dict[str, dict[str, object]]] = {
    "negative delay": {"delay": -1},
    "delay is text": {"delay": "1"},
    "ttr of zero": {"ttr": 0},
    "no topic": {"topic": ""},
    "topic with a comma": {"topic": "a,b"},
    "id too long": {"id": "x" * 1025},
    "id is a number": {"id": 7},
    "no id": {"id": None},
    "body is a number": {"body": 7},
}


async def test_an_array_is_answered_as_its_jobs_are_one_by_one(api: Api, topic: str) -> None:
    """It is read in pieces; only a piece with a bad or doubtful job is parsed job by job."""
    jobs: list[dict[str, Any]] = [{"topic": topic, "id": f"{topic}/{n}"} for n in range(230)]
    for place, member in zip(range(0, 100, 9), BAD_MEMBERS.values(), strict=False):
        jobs[place] |= member
    jobs[120] |= {"dely": 5}
    jobs[170] = {"Topic": topic, "ID": f"{topic}/170", "Delay": 5}
    alone = [await api.push(**job) for job in jobs]
    assert [each.code for each in alone[:81:9]] == [INVALID] * len(BAD_MEMBERS)
    together = (await api.push_all(jobs)).ok()
    assert [each["code"] for each in together] == [each.code for each in alone]
    assert [each["message"] for each in together] == [each.message for each in alone]
    [kept] = (await api.call("/topics", {"topics": [topic]})).ok()
    assert kept["delayed"] + kept["ready"] == len(jobs) - len(BAD_MEMBERS)


@pytest.mark.parametrize("item", [1, "job", None, True, [], [{}]], ids=repr)
async def test_an_item_that_is_no_job_fails_alone(api: Api, topic: str, item: object) -> None:
    good = {"topic": topic, "id": f"{topic}/good", "ttr": 60}
    results = (await api.call("/push", [item, good])).ok()
    assert [result["code"] for result in results] == [INVALID, OK]
    assert (await api.pop(topic)).ok()["id"] == good["id"]


@pytest.mark.parametrize("verb", ["/finish", "/delete"])
async def test_with_receipts_each_id_is_removed_by_its_own_reservation_only(
    api: Api, topic: str, name: Name, verb: str
) -> None:
    ids = {kind: name(kind) for kind in ("held", "lost", "ended", "unproved")}
    (await api.push_all([{"topic": topic, "id": job_id} for job_id in ids.values()])).ok()
    jobs = {job["id"]: job["receipt"] for job in await take(api, topic, len(ids))}
    (await api.call("/release", {"id": ids["lost"], "delay": 0})).ok()
    await take(api, topic, 1)  # by another client
    (await api.finish(ids["ended"])).ok()
    receipts = [jobs[ids["held"]], jobs[ids["lost"]], jobs[ids["ended"]], ""]
    none = {"ids": [*ids.values()], "receipts": ["no-receipt"] * len(ids)}
    (await api.call(verb, none)).refused()
    results = (await api.call(verb, {"ids": [*ids.values()], "receipts": receipts})).ok()
    codes = (OK, STALE_RECEIPT, NO_SUCH_JOB, OK)
    assert results == [
        {"id": job_id, "code": code} for job_id, code in zip(ids.values(), codes, strict=True)
    ]
    left = (await api.call("/get", {"ids": [*ids.values()]})).ok()
    assert [job and job["state"] for job in left] == [None, "reserved", None, None]


async def test_the_server_makes_unique_ids(api: Api, topic: str) -> None:
    answers = await asyncio.gather(*(api.push(topic=topic, id="*", body="x") for _ in range(300)))
    singles = [answer.ok()["id"] for answer in answers]
    results = (await api.push_all([{"topic": topic, "id": "*"}] * 300)).ok()
    made = [*singles, *(result["id"] for result in results)]
    assert len(set(made)) == 600
    delivered = [job["id"] for job in await take(api, topic, 600)]
    assert sorted(delivered) == sorted(made)


async def test_made_ids_are_ordered_by_time(api: Api, topic: str) -> None:
    made = []
    for _ in range(20):
        made.append((await api.push(topic=topic, id="*", delay=3600)).ok()["id"])
        await asyncio.sleep(0.002)  # ids of one millisecond may come in any order
    assert made == sorted(made)
