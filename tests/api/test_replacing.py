"""A push of an id that exists replaces the job, wherever it is."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

import pytest

from tests.api.jobs import OVER_S, STATES, assert_nothing_comes, push_into, push_soon
from tests.api_client import push_due_in

from .conftest import in_one_setup

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.api_client import Api

    Name = Callable[[str], str]

pytestmark = in_one_setup

CLOCK_STEP_S: Final = 0.002


@pytest.mark.parametrize("other_topic", [False, True], ids=["same topic", "other topic"])
@pytest.mark.parametrize("state", STATES)
async def test_a_replaced_job_comes_once_as_the_new_one_when_that_is_due(
    api: Api, name: Name, state: str, *, other_topic: bool
) -> None:
    old_topic, job_id = name("old"), name("id")
    new_topic = name("new") if other_topic else old_topic
    await push_soon(api, state, topic=old_topic, id=job_id, body="old")
    sent = await push_due_in(api, OVER_S[state], topic=new_topic, id=job_id, body="new")
    job = (await api.pop(f"{old_topic},{new_topic}")).ok()
    assert time.time() >= sent.due_s - CLOCK_STEP_S
    assert (job["topic"], job["body"], job["attempt"]) == (new_topic, "new", 1)
    await assert_nothing_comes(api, old_topic, new_topic, within_s=0.1)


@pytest.mark.parametrize("other_topic", [False, True], ids=["same topic", "other topic"])
@pytest.mark.parametrize("state", STATES)
async def test_a_job_replaced_by_one_due_now_comes_now_and_once(
    api: Api, name: Name, state: str, *, other_topic: bool
) -> None:
    old_topic, job_id = name("old"), name("id")
    new_topic = name("new") if other_topic else old_topic
    await push_soon(api, state, topic=old_topic, id=job_id, body="old")
    (await api.push(topic=new_topic, id=job_id, body="new")).ok()
    job = (await api.pop(f"{old_topic},{new_topic}")).ok()
    assert (job["topic"], job["body"], job["attempt"]) == (new_topic, "new", 1)
    await assert_nothing_comes(api, old_topic, new_topic, within_s=OVER_S[state])


@pytest.mark.parametrize("state", STATES)
async def test_get_shows_the_new_job_only(api: Api, name: Name, state: str) -> None:
    job_id = name("id")
    await push_into(api, state, topic=name("old"), id=job_id, ttr=60, body="old")
    (await api.push(topic=(topic := name("new")), id=job_id, delay=100, ttr=7, body="new")).ok()
    job = (await api.get(job_id)).ok()
    shown = [job[member] for member in ("topic", "id", "ttr", "body", "state", "attempt")]
    assert shown == [topic, job_id, 7, "new", "delayed", 0]
    assert job["delay"] == pytest.approx(time.time() + 100, abs=5)


@pytest.mark.parametrize("state", STATES)
async def test_a_replacing_job_can_be_removed(api: Api, topic: str, name: Name, state: str) -> None:
    job_id = name("id")
    await push_soon(api, state, topic=topic, id=job_id)
    (await api.push(topic=topic, id=job_id, delay=0.1)).ok()
    (await api.delete(job_id)).ok()
    await assert_nothing_comes(api, topic, within_s=OVER_S[state])


async def test_a_hundred_pushes_of_one_id_at_once_leave_one_job(
    api: Api, topic: str, name: Name
) -> None:
    job_id = name("id")
    answers = await asyncio.gather(
        *(api.push(topic=topic, id=job_id, delay=0.2, body=str(n)) for n in range(100))
    )
    assert {answer.code for answer in answers} == {0}
    assert (await api.pop(topic)).ok()["id"] == job_id
    await assert_nothing_comes(api, topic, within_s=0.3)


async def test_an_id_twice_in_one_array_is_one_job_the_last(
    api: Api, topic: str, name: Name
) -> None:
    job_id = name("id")
    jobs = [{"topic": topic, "id": job_id, "body": body} for body in ("first", "second", "last")]
    (await api.push_all(jobs)).ok()
    assert (await api.pop(topic)).ok()["body"] == "last"
    await assert_nothing_comes(api, topic, within_s=0.2)


async def test_a_job_replaced_many_times_while_ready_comes_once(
    api: Api, topic: str, name: Name
) -> None:
    job_id = name("id")
    for _ in range(20):
        await push_into(api, "ready", topic=topic, id=job_id)
    assert [job["id"] for job in (await api.pop(topic, count=100)).ok()] == [job_id]
    await assert_nothing_comes(api, topic, within_s=0.2)
