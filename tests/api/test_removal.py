"""A job is delivered until it is finished or deleted; polls beside it go on. The states: tests/store/test_finish.py."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

import pytest

from tests.api.jobs import assert_nothing_comes, push_into, until_ready
from tests.api_client import Api, push_due_in

from .conftest import in_one_setup

Name = Callable[[str], str]

pytestmark = in_one_setup

VERBS: Final = ("/finish", "/delete")


async def test_a_job_that_is_not_finished_within_its_ttr_is_delivered_again(
    api: Api, topic: str, name: Name
) -> None:
    job_id = name("id")
    (await api.push(topic=topic, id=job_id, ttr=1, body="again")).ok()
    receipts = set()
    for attempt in (1, 2, 3):
        asked_s = time.time()
        job = (await api.pop(topic)).ok()
        assert (job["id"], job["body"], job["attempt"]) == (job_id, "again", attempt)
        receipts.add(job["receipt"])
        if attempt > 1:
            assert time.time() - asked_s >= 0.9
    assert len(receipts) == 3


async def test_a_redelivered_job_can_be_finished(api: Api, topic: str, name: Name) -> None:
    await push_into(api, "reserved", topic=topic, id=(job_id := name("id")), ttr=1)
    assert (await api.pop(topic)).ok()["attempt"] == 2
    (await api.finish(job_id)).ok()
    assert (await api.get(job_id)).ok() is None
    await assert_nothing_comes(api, topic, within_s=1.3)


@pytest.mark.parametrize("verb", VERBS)
async def test_a_job_can_be_removed_twice(api: Api, topic: str, name: Name, verb: str) -> None:
    await push_into(api, "ready", topic=topic, id=(job_id := name("id")))
    for _ in range(2):
        assert (await api.call(verb, {"id": job_id})).ok() is None


async def test_a_poll_beside_a_deleted_job_keeps_waiting(api: Api, topic: str, name: Name) -> None:
    await push_into(api, "ready", topic=topic, id=(deleted := name("deleted")))
    (await api.delete(deleted)).ok()
    poll = asyncio.create_task(api.pop(topic))
    sent = await push_due_in(api, 0.3, topic=topic, id=name("next"))
    assert (await poll).ok()["id"] == sent.id


async def test_a_poll_that_waits_for_a_job_that_gets_deleted_keeps_waiting(
    api: Api, topic: str, name: Name
) -> None:
    poll = asyncio.create_task(api.pop(topic))
    deleted = await push_due_in(api, 0.2, topic=topic, id=name("deleted"))
    (await api.delete(deleted.id)).ok()
    sent = await push_due_in(api, 0.5, topic=topic, id=name("next"))
    assert (await poll).ok()["id"] == sent.id


async def test_many_deleted_jobs_do_not_hide_the_one_behind_them(api: Api, topic: str) -> None:
    ids = [f"{topic}/{n}" for n in range(1000)]
    (await api.push_all([{"topic": topic, "id": job_id} for job_id in ids])).ok()
    await until_ready(api, *ids)
    (await api.call("/delete", {"ids": ids[:-1]})).ok()
    assert (await api.pop(topic, timeout=0)).ok()["id"] == ids[-1]
