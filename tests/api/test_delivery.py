"""When, and in which order, jobs are delivered."""

import asyncio
import random
import statistics
import time
from collections.abc import Callable
from typing import Final

import pytest

from tests.api.jobs import until_ready
from tests.api_client import Api, open_api, push_due_in
from tests.processes import Processes, StoreServer

Name = Callable[[str], str]

# TIME and time.time() are the same clock, but a fraction of a millisecond is cut off
CLOCK_STEP_S: Final = 0.002


async def test_a_popped_job_is_the_pushed_one(api: Api, topic: str, name: Name) -> None:
    sent = await push_due_in(api, 0, topic=topic, id=name("id"), body='{"uid":1}', ttr=77)
    job = (await api.pop(topic)).ok()
    assert list(job)[:3] == ["topic", "id", "body"]
    assert (job["topic"], job["id"], job["body"]) == (topic, sent.id, '{"uid":1}')
    assert job["attempt"] == 1
    assert isinstance(job["receipt"], str)
    assert job["due"] == pytest.approx(sent.due_s, abs=5)


@pytest.mark.parametrize("delay_s", [0, 0.001, 0.3, 1.25])
async def test_a_job_is_never_delivered_before_it_is_due(
    api: Api, topic: str, name: Name, delay_s: float
) -> None:
    sent = await push_due_in(api, delay_s, topic=topic, id=name("id"))
    assert (await api.pop(topic)).ok()["id"] == sent.id
    assert time.time() >= sent.due_s - CLOCK_STEP_S


async def test_a_due_job_does_not_wait_for_the_next_full_second(api: Api, name: Name) -> None:
    async def lateness_s(fraction: float) -> float:
        topic = name("topic")
        due_s = int(time.time()) + 2 + fraction
        (await api.push(topic=topic, id=name("id"), due=due_s)).ok()
        (await api.pop(topic)).ok()
        return time.time() - due_s

    fractions = [0.05, 0.15, 0.25, 0.35, 0.45]
    lateness = await asyncio.gather(*map(lateness_s, fractions))
    assert min(lateness) >= -CLOCK_STEP_S
    # with a timer of whole seconds it would be 0.75; the median forgives a busy machine one late job
    assert statistics.median(lateness) < 0.4


async def test_a_poll_that_sleeps_towards_a_late_job_wakes_for_an_earlier_one(
    api: Api, topic: str, name: Name
) -> None:
    await push_due_in(api, 3600, topic=topic, id=name("late"))
    poll = asyncio.create_task(api.pop(topic))
    early = await push_due_in(api, 0.2, topic=topic, id=name("early"))
    assert (await poll).ok()["id"] == early.id
    assert time.time() - early.due_s < 0.7


@pytest.mark.parametrize("ago_s", [0.5, 10, 86_400 * 365])
async def test_a_job_due_in_the_past_is_delivered_at_once(
    api: Api, topic: str, name: Name, ago_s: float
) -> None:
    job_id = name("id")
    (await api.push(topic=topic, id=job_id, due=time.time() - ago_s)).ok()
    assert (await api.pop(topic)).ok()["id"] == job_id


async def test_due_is_the_unix_second_that_get_and_pop_show(
    api: Api, topic: str, name: Name
) -> None:
    job_id, due_s = name("id"), int(time.time()) + 1
    (await api.push(topic=topic, id=job_id, due=due_s)).ok()
    assert (await api.get(job_id)).ok()["delay"] == due_s
    assert (await api.pop(topic)).ok()["due"] == due_s
    assert time.time() >= due_s


async def test_jobs_of_a_topic_come_in_the_order_of_their_due_times(
    ordered_api: Api, topic: str, name: Name
) -> None:
    start_s = time.time() + 0.5
    dues = [start_s + 0.01 * step for step in range(50)]
    jobs = [{"topic": topic, "id": f"{topic}/{n:02}", "due": due} for n, due in enumerate(dues)]
    random.shuffle(jobs)
    (await ordered_api.push_all(jobs)).ok()
    delivered = [(await ordered_api.pop(topic)).ok()["id"] for _ in jobs]
    assert delivered == sorted(delivered)


async def test_jobs_that_are_due_together_come_in_the_order_of_their_due_times(
    ordered_api: Api, topic: str
) -> None:
    start_s = time.time() + 1
    ids = [f"{topic}/{n:03}" for n in range(250)]
    jobs = [{"topic": topic, "id": i, "due": start_s + 0.001 * n} for n, i in enumerate(ids)]
    random.shuffle(jobs)
    (await ordered_api.push_all(jobs)).ok()
    await until_ready(ordered_api, *ids)
    assert [job["id"] for job in (await ordered_api.pop(topic, count=250)).ok()] == ids


@pytest.mark.parametrize("separator", [",", ", ", " ,"])
async def test_a_pop_of_two_topics_prefers_the_first(
    ordered_api: Api, name: Name, separator: str
) -> None:
    first, second = name("first"), name("second")
    ids = [name("id") for _ in range(4)]
    for job_id, topic in zip(ids, [second, second, first, first], strict=True):
        (await ordered_api.push(topic=topic, id=job_id)).ok()
    await until_ready(ordered_api, *ids)
    both = f"{first}{separator}{second}"
    delivered = [(await ordered_api.pop(both)).ok()["topic"] for _ in ids]
    assert delivered == [first, first, second, second]


async def test_a_pop_of_two_topics_waits_for_either(api: Api, name: Name) -> None:
    first, second = name("first"), name("second")
    for topic in (second, first):
        poll = asyncio.create_task(api.pop(f"{first},{second}"))
        sent = await push_due_in(api, 0.1, topic=topic, id=name("id"))
        assert (await poll).ok()["id"] == sent.id


async def test_a_pop_takes_only_jobs_of_its_topic(api: Api, topic: str, name: Name) -> None:
    job_id = name("id")
    (await api.push(topic=f"{topic}x", id=job_id)).ok()
    await until_ready(api, job_id)
    for other in (topic, f"{topic}*", f"{topic}?", f"{topic}xx", topic.upper() + "X"):
        assert (await api.pop(other, timeout=0)).ok() is None


async def test_a_pop_with_count_gives_what_is_there(
    ordered_api: Api, topic: str, name: Name
) -> None:
    ids = [f"{topic}/{n}" for n in range(5)]
    for job_id in ids:
        (await ordered_api.push(topic=topic, id=job_id)).ok()
    await until_ready(ordered_api, *ids)
    first, rest = [(await ordered_api.pop(topic, count=3)).ok() for _ in range(2)]
    assert [job["id"] for job in first + rest] == ids
    assert len(first) == 3


async def test_a_pop_with_count_fills_up_from_the_next_topic(ordered_api: Api, name: Name) -> None:
    first, second = name("first"), name("second")
    jobs = [{"topic": t, "id": name("id")} for t in (second, first) for _ in range(2)]
    (await ordered_api.push_all(jobs)).ok()
    await until_ready(ordered_api, *(str(job["id"]) for job in jobs))
    taken = (await ordered_api.pop(f"{first},{second}", count=3)).ok()
    assert [job["topic"] for job in taken] == [first, first, second]


async def test_a_pop_with_count_waits_for_the_first_job_only(
    api: Api, topic: str, name: Name
) -> None:
    poll = asyncio.create_task(api.pop(topic, count=10))
    sent = await push_due_in(api, 0.1, topic=topic, id=name("id"))
    assert [job["id"] for job in (await poll).ok()] == [sent.id]


@pytest.mark.parametrize(
    ("options", "empty"), [({}, None), ({"count": 1}, []), ({"count": 1000}, [])]
)
@pytest.mark.parametrize("timeout_s", [0, 0.3])
async def test_a_poll_without_a_job_ends_empty_at_its_timeout(
    api: Api, topic: str, timeout_s: float, options: dict[str, int], empty: object
) -> None:
    started_s = time.monotonic()
    assert (await api.pop(topic, timeout=timeout_s, **options)).ok() == empty
    waited_s = time.monotonic() - started_s
    assert timeout_s - CLOCK_STEP_S <= waited_s < timeout_s + 1.5


async def test_a_poll_without_a_timeout_ends_after_queue_block_timeout(
    processes: Processes, redis_server: StoreServer, topic: str
) -> None:
    server = processes.server(redis_server, queue_block_timeout=1)
    async with open_api(server.url) as api:
        started_s = time.monotonic()
        assert (await api.call("/pop", {"topic": topic})).ok() is None
        assert 1 - CLOCK_STEP_S <= time.monotonic() - started_s < 3
    server.close()


async def test_waiting_polls_get_a_job_each(api: Api, topic: str) -> None:
    polls = [asyncio.create_task(api.pop(topic)) for _ in range(300)]
    ids = [f"{topic}/{n}" for n in range(300)]
    (await api.push_all([{"topic": topic, "id": job_id} for job_id in ids])).ok()
    delivered = [(await poll).ok()["id"] for poll in polls]
    assert sorted(delivered) == sorted(ids)
