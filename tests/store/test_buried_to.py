"""buried_to: each dead letter pushes a job that reports it, in the step that buries it."""

import json
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any, Final
from zlib import crc32

import pytest

from delayqueue.domain.access import EVERYWHERE
from delayqueue.errors import Code
from delayqueue.store.topics import Limited
from delayqueue.store.types import Moved
from delayqueue.store.verbs import BURY, KICK, Burial, Kick
from tests.store.bucket import HOSTILE, HOUR_MS, SOON_MS, Bucket, a_moment, job

LIMITED_CALL: Final = 0.5  # of the jobs of a large call, one call buries fewer


async def set_to(bucket: Bucket, topic: str, to: str | None, *, declared: bool = False) -> Limited:
    limits = bucket.store
    return await limits.limit(0, topic, {"buried_to": to}, declared=declared)


async def reports(bucket: Bucket, topic: str = "dead") -> list[dict[str, Any]]:
    """What the jobs of the topic report; they are taken."""
    found = []
    for each in await bucket.pop(topic):
        found.append(json.loads(each.body))
        await bucket.finish(each.id)
    return found


async def give_up(bucket: Bucket) -> None:
    await bucket.pop_one()
    await bucket.bury("a", message="no such account")


async def bury_what_waits(bucket: Bucket) -> None:
    await bucket.bury("a", message="no such account")


async def fail(bucket: Bucket) -> None:
    await bucket.pop_one()
    assert await bucket.release("a", message="no such account") == Moved(0, None, buried=True)


async def time_out(bucket: Bucket) -> None:
    await bucket.push(job("a", ttr_ms=SOON_MS, retry_ms=(), body="unpaid?"))
    await bucket.pop_one()
    await a_moment()
    await bucket.tick()


WAYS: Final[dict[str, tuple[Callable[[Bucket], Awaitable[object]], str, int]]] = {
    "bury": (give_up, "no such account", 1),
    "bury what waits": (bury_what_waits, "no such account", 0),
    "release": (fail, "no such account", 1),
    "time out": (time_out, "ttr expired", 1),
}


@pytest.mark.parametrize(("way", "reason", "attempts"), WAYS.values(), ids=WAYS)
async def test_each_way_of_burying_is_reported(
    bucket: Bucket, way: Callable[[Bucket], Awaitable[object]], reason: str, attempts: int
) -> None:
    assert (await set_to(bucket, "t", "dead")).limit.buried_to == "dead"
    await bucket.push(job("a", retry_ms=(), body="unpaid?"))
    await way(bucket)
    assert await bucket.state("a") == "buried"
    assert await reports(bucket) == [
        {"id": "a", "topic": "t", "reason": reason, "attempts": attempts, "body": "unpaid?"}
    ]


async def test_a_report_tells_the_group_of_the_dead_letter(bucket: Bucket) -> None:
    await set_to(bucket, "t", "dead")
    group = 'a "b"\n{c}\0🐘'
    await bucket.push(job("a", texts={"group": group}, body="unpaid?"))
    await bucket.bury("a")
    [report] = await reports(bucket)
    assert (report["group"], report["body"]) == (group, "unpaid?")


async def test_a_report_wakes_whoever_waits_and_counts_as_pushed(bucket: Bucket) -> None:
    await set_to(bucket, "t", "dead")
    await bucket.push(job("a"))
    reply = await bucket.store.call("bury", 0, ["a", "", "", ""])
    assert reply.change.ready == [("dead", 1)]
    assert ("pushed", "dead", 1) in [each[:3] for each in reply.events]


async def test_without_it_nothing_is_pushed(bucket: Bucket) -> None:
    await set_to(bucket, "t", "dead")
    await set_to(bucket, "t", None)
    await bucket.push(job("a"))
    await bucket.bury("a")
    assert await bucket.topic_names() == ["t"]


async def test_a_job_that_is_buried_again_is_reported_again_and_one_that_goes_back_is_not(
    bucket: Bucket,
) -> None:
    await set_to(bucket, "t", "dead")
    await bucket.push(job("a"))
    await bucket.bury("a")
    await bucket.kick("a")
    await bucket.bury("a")
    [[_, reserved]], _ = await bucket.store.reserve(0, ["a"])
    assert reserved is not None
    await bucket.requeue(reserved)
    assert await bucket.state("a") == "buried"
    assert len(await reports(bucket)) == 2


@pytest.mark.parametrize("job_id", [*HOSTILE, "x" * 250, "id-with-a-long-name-0123456789"])
async def test_the_report_is_in_the_bucket_of_its_job_whatever_their_number(
    bucket: Bucket, job_id: str
) -> None:
    await set_to(bucket, "t", "dead")
    await bucket.push(job(job_id))
    await bucket.bury(job_id)
    report = await bucket.pop_one("dead")
    assert crc32(report.id.encode()) == crc32(job_id.encode())
    assert json.loads(report.body)["id"] == job_id


async def test_many_at_once_are_all_reported_and_no_call_does_all(bucket: Bucket) -> None:
    ids = [f"job-{n}" for n in range(1000)]
    await set_to(bucket, "t", "dead")
    await bucket.push(*map(job, ids))
    burials = [Burial(job_id, None, "") for job_id in ids]
    codes, _ = await bucket.store.run_verb(BURY, 0, burials, EVERYWHERE)
    assert 0 < len(codes) < LIMITED_CALL * len(ids)
    await bucket.bury(*ids[len(codes) :])
    found: list[str] = []
    while letters := await reports(bucket):
        found += [each["id"] for each in letters]
    assert sorted(found) == sorted(ids)


@pytest.mark.parametrize("body", ['naïve 排队 \x00"\\'.encode(), b"\xff", b"b" * 500_000])
async def test_any_body_is_reported(bucket: Bucket, body: bytes) -> None:
    await set_to(bucket, "t", "dead")
    await bucket.push(job("a", body=body))
    await bucket.bury("a")
    report = json.loads((await bucket.pop_one("dead")).body.decode("utf-8", "surrogateescape"))
    assert report["body"].encode("utf-8", "surrogateescape") == body


@pytest.mark.parametrize("body", ['"\\' * 1000, "\x00" * 1000])
async def test_a_report_that_is_buried_is_handed_on_and_does_not_grow(
    bucket: Bucket, body: str
) -> None:
    topics = [f"t{n}" for n in range(9)]
    for topic, to in pairwise(topics):
        await set_to(bucket, topic, to)
    await bucket.push(job("a", topic=topics[0], body=body))
    await bucket.bury("a", message="no such account")
    for topic in topics[1:-1]:
        report = await bucket.pop_one(topic)
        await bucket.bury(report.id, nonce=report.nonce, message="nor here")
    [last] = await reports(bucket, topics[-1])
    assert (last["id"], last["topic"], last["body"]) == ("a", topics[0], body)
    assert last["reason"] == "no such account"


async def test_what_leads_back_is_refused(bucket: Bucket) -> None:
    assert (await set_to(bucket, "a", "a")).code == Code.JOB_EXISTS
    assert (await set_to(bucket, "a", "b")).code == Code.OK
    assert (await set_to(bucket, "b", "c")).code == Code.OK
    refused = await set_to(bucket, "c", "a")
    assert (refused.code, refused.limit.buried_to) == (Code.JOB_EXISTS, None)


async def test_a_loop_that_came_about_all_the_same_pushes_nothing(bucket: Bucket) -> None:
    for topic, to in (("a", "b"), ("b", "c"), ("c", "a"), ("before", "a")):
        await set_to(bucket, topic, to, declared=True)
    await bucket.push(job("1", topic="a"), job("2", topic="before"))
    await bucket.bury("1", "2")
    assert await bucket.state("1") == "buried"
    assert (await bucket.counts("b")).ready == 0
    assert [each["id"] for each in await reports(bucket, "a")] == ["2"]


async def test_a_broken_key_does_not_stop_the_burial(bucket: Bucket) -> None:
    await set_to(bucket, "t", "dead")
    await bucket.push(job("a"))
    await bucket.spoil("dq_queue_dead")
    assert await bucket.bury("a") == [0]
    assert await bucket.state("a") == "buried"
    await bucket.redis.delete(bucket.key("dq_queue_dead"))


async def test_an_id_that_is_taken_is_passed_over(bucket: Bucket) -> None:
    """Two jobs with the same CRC, buried in the same millisecond, want the same id."""
    one, other = "plumless", "buckeroo"
    assert crc32(one.encode()) == crc32(other.encode())
    await set_to(bucket, "t", "dead")
    await bucket.push(job(one), job(other, retain_ms=HOUR_MS))
    await bucket.bury(one, other)
    assert {each["id"] for each in await reports(bucket)} == {one, other}


FORGED: Final = '{"id":"R9","topic":"of others","reason":"made up","attempts":3,"body":"500 cents"}'


async def test_an_id_like_that_of_a_report_makes_none_of_a_job(bucket: Bucket) -> None:
    """Who may push to a topic must not be able to report jobs of others."""
    await set_to(bucket, "t", "dead")
    await bucket.push(job("dead-letter:7", body=FORGED))
    await bucket.bury("dead-letter:7", message="why")
    [report] = await reports(bucket)
    assert (report["id"], report["topic"], report["body"]) == ("dead-letter:7", "t", FORGED)


async def test_a_report_with_another_body_is_a_job_of_its_own(bucket: Bucket) -> None:
    await set_to(bucket, "t", "dead")
    await set_to(bucket, "dead", "deader")
    await bucket.push(job("a"))
    await bucket.bury("a")
    first = await bucket.pop_one("dead")
    await bucket.bury(first.id, nonce=first.nonce)
    assert await bucket.store.all_of(KICK, [Kick(first.id, FORGED)]) == [0]
    again = await bucket.pop_one("dead")
    await bucket.bury(again.id, nonce=again.nonce)
    handed_on, quoted = await reports(bucket, "deader")
    assert handed_on["id"] == "a"
    assert (quoted["id"], quoted["body"]) == (first.id, FORGED)


async def test_a_report_to_which_an_older_server_gave_another_body_takes_a_priority(
    bucket: Bucket,
) -> None:
    """It left `{}` where a job without options has none."""
    await set_to(bucket, "t", "dead")
    await bucket.push(job("a"))
    await bucket.bury("a")
    report = await bucket.pop_one("dead")
    raw: Any = await bucket.redis.hget(bucket.key("job"), report.id)
    written = raw.replace(b'!!!!-dead{"report":1}', b"!!!!#dead{}")  # and their length
    assert written != raw
    await bucket.redis.hset(bucket.key("job"), report.id, written)
    await bucket.release(report.id, delay_ms=0, priority=7)
    assert (await bucket.pop_one("dead")).body == report.body
    assert (await bucket.view(report.id)).priority == 7


async def test_a_long_chain_reports_from_its_head_on_and_hands_on_a_hundred_times(
    bucket: Bucket,
) -> None:
    """However long a circle is that settings have made, no job goes round in it for ever."""
    topics = [f"t{n}" for n in range(103)]
    for topic, to in pairwise(topics):
        assert (await set_to(bucket, topic, to)).code == Code.OK
    await bucket.push(job("a", topic=topics[0]))
    await bucket.bury("a")
    reached = 0
    for topic in topics[1:]:
        found = await bucket.pop(topic)
        if not found:
            break
        assert json.loads(found[0].body)["id"] == "a"
        await bucket.bury(found[0].id, nonce=found[0].nonce)
        reached += 1
    assert reached == 100
