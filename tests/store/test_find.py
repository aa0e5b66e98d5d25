"""find: jobs by a part of their id or their body."""

from typing import Any, Final

import pytest

from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.domain.job import Job
from delayqueue.errors import Code, Invalid
from delayqueue.store.listings import Filters, Listings, Wanted
from delayqueue.store.paging import write_cursor
from delayqueue.store.store import Store
from delayqueue.store.types import Pushed
from delayqueue.store.verbs import FINISH, PUSH, Ending
from tests.store.bucket import Bucket, on_one_store


@pytest.fixture
async def store(bucket: Bucket) -> Store:
    store = bucket.store
    jobs = [
        Job(topic="order", id="R-1001%a", body='{"name": "排队"}', ttr_ms=1000, delay_ms=60_000),
        Job(topic="order", id="R-1002", body='{"name": "other"}', ttr_ms=1000, retain_ms=60_000),
        Job(topic="mail", id="排队-1001", body="R-1", ttr_ms=1000, delay_ms=60_000),
    ]
    assert await store.run(PUSH, jobs, EVERYWHERE) == [Pushed(Code.OK)] * 3
    return store


def everywhere(store: Store) -> Listings:
    return Listings(store, EVERYWHERE)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Wanted("1001", "", ""), {"R-1001%a", "排队-1001"}),
        (Wanted("1%a", "", ""), {"R-1001%a"}),
        (Wanted("", "排队", ""), {"R-1001%a"}),
        (Wanted("", "R-1", ""), {"排队-1001"}),  # neither an id nor a topic is a body
        (Wanted("", "name", "order"), {"R-1001%a", "R-1002"}),
        (Wanted("", "name", "mail"), set()),
        (Wanted("2", "other", ""), {"R-1002"}),
    ],
)
async def test_all_texts_must_be_there(store: Store, wanted: Wanted, found: set[str]) -> None:
    answer = await everywhere(store).find(wanted, 100, "")
    assert ({job.id for job in answer.jobs}, answer.looked, answer.cursor) == (found, 3, "")


async def test_one_that_has_ended_is_found_with_its_state(store: Store) -> None:
    assert await store.run(FINISH, [Ending("R-1002", None, "")], EVERYWHERE) == [0]
    (job,) = (await everywhere(store).find(Wanted("R-1002", "", ""), 100, "")).jobs
    assert (job.topic, job.state) == ("order", "finished")


async def test_a_page_with_all_that_match_has_no_cursor(store: Store) -> None:
    for start in range(0, 3000, 1000):
        ids = [f"m-{n}" for n in range(start, start + 1000)]
        jobs = [Job(topic="many", id=each, body="", ttr_ms=1000) for each in ids]
        await store.run(PUSH, jobs, EVERYWHERE)
    for wanted, has_more in (
        (Wanted("R-1001", "", ""), False),
        (Wanted("m-", "", ""), True),
    ):
        answer = await everywhere(store).find(wanted, 1, "")
        assert (len(answer.jobs) >= 1, answer.cursor != "") == (True, has_more)


async def test_a_cursor_of_another_process_of_the_store_begins_again(store: Store) -> None:
    wanted = Wanted("1001", "", "")
    cursor = write_cursor(wanted, 0, "job 4242@0123abcd")
    answer = await everywhere(store).find(wanted, 100, cursor)
    assert {job.id for job in answer.jobs} == {"R-1001%a", "排队-1001"}


async def test_other_topics_are_hidden(store: Store) -> None:
    answer = await Listings(store, Scope.of(["order*"])).find(Wanted("1001", "", ""), 100, "")
    assert [job.id for job in answer.jobs] == ["R-1001%a"]


@on_one_store
async def test_a_call_looks_at_so_many_and_the_cursor_leads_to_the_rest(store: Store) -> None:
    for start in range(0, 12_000, 1000):
        await store.run(
            PUSH,
            [
                Job(topic="many", id=f"{n:05}", body="x" * 99, ttr_ms=1000, delay_ms=60_000)
                for n in range(start, start + 1000)
            ],
            EVERYWHERE,
        )
    wanted, cursor, calls, looked, found = Wanted("29", "", "many"), "", 0, 0, set()
    while not calls or cursor:
        answer = await everywhere(store).find(wanted, 1000, cursor)
        assert answer.looked < 12_000
        calls, looked, cursor = calls + 1, looked + answer.looked, answer.cursor
        found |= {job.id for job in answer.jobs}
    assert calls > 1
    assert looked >= 12_003
    assert found == {f"{n:05}" for n in range(12_000) if "29" in f"{n:05}"}
    with pytest.raises(Invalid):
        await everywhere(store).find(Wanted("30", "", ""), 100, answer.cursor or "x")


LONG: Final = "x" * 40


@pytest.mark.parametrize("part", ["a" * 500 + "b", "ab" * 300, "排队" * 200, LONG])
async def test_a_long_text_is_found_as_a_whole_only(store: Store, part: str) -> None:
    """Not where its beginning and its end are alone."""
    middle = len(part) // 2
    jobs = {
        "whole": f"{part[:-1]}{part}{part[1:]}",
        "ends": f"{part[:middle]}?{part[middle:]}",
        "end": part[1:],
        "start": part[:-1],
        "turned": part[middle + 1 :] + part[: middle - 1],
    }
    pushed = [
        Job(topic="long", id=f"{LONG}{name}", body=body, ttr_ms=1000) for name, body in jobs.items()
    ]
    await store.run(PUSH, pushed, EVERYWHERE)
    found = await everywhere(store).find(Wanted(LONG, part, ""), 100, "")
    assert [job.id for job in found.jobs] == [f"{LONG}whole"]
    assert await store.run(FINISH, [Ending(f"{LONG}whole", None, "")], EVERYWHERE) == [0]


@pytest.mark.parametrize("group", ["customer-7", 'a "b"\n{c}', "排队"])
async def test_jobs_are_found_by_their_group_as_a_whole(bucket: Bucket, group: str) -> None:
    groups = {"mine": group, "longer": f"{group}0", "shorter": group[:-1], "none": ""}
    for job_id, own in groups.items():
        texts = {"group": own} if own else {}
        await bucket.push(Job(topic="t", id=job_id, body=group, ttr_ms=1000, texts=texts))
    search = Listings(bucket.store, EVERYWHERE)
    found = await search.find(Wanted("", "", ""), 100, "", Filters(group=group))
    assert [(job.id, job.group) for job in found.jobs] == [("mine", group)]


async def test_a_long_message_is_found_as_a_whole_only(bucket: Bucket) -> None:
    part = "why" * 100
    for name, message in (("whole", f"{part}!"), ("ends", f"{part[:50]}?{part[50:]}")):
        await bucket.push(Job(topic="t", id=name, body="", ttr_ms=1000))
        await bucket.bury(name, message=message)
    search = Listings(bucket.store, EVERYWHERE)
    found = await search.find(Wanted("", "", ""), 100, "", Filters(message_part=part))
    assert [job.id for job in found.jobs] == ["whole"]


@on_one_store
async def test_a_search_takes_no_longer_for_a_long_text_that_is_nearly_everywhere(
    bucket: Bucket,
) -> None:
    """Else who may look makes all others wait: time of the store, compared with that of a short text."""
    for number in range(40):
        await bucket.push(Job(topic="t", id=str(number), body="a" * 250_000, ttr_ms=1000))

    async def took_s(part: str) -> float:
        before, cursor = await processor_s(bucket), ""
        while True:
            found = await Listings(bucket.store, EVERYWHERE).find(Wanted("", part, ""), 100, cursor)
            if not (cursor := found.cursor):
                return await processor_s(bucket) - before

    took = [(await took_s("a" * 31 + "b"), await took_s("a" * 1023 + "b")) for _ in range(4)]
    short_s, long_s = (min(each) for each in zip(*took, strict=True))
    assert long_s < 1.7 * short_s  # compared whole at each letter it is 2.5 times


async def processor_s(bucket: Bucket) -> float:
    """How much time the store's process has had, in all: what others take of the processor does not count."""
    used: Any = await bucket.redis.info("cpu")
    return float(used["used_cpu_user"]) + float(used["used_cpu_sys"])
