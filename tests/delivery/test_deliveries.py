"""The subscribers of a topic are called in order, each until it succeeds, and every result is kept."""

import asyncio
import json
from typing import Final

import pytest

from tests.processes import LOOPBACK, QueueServer
from tests.waiting import until, until_async

from .conftest import Shop, results
from .receiver import SECRET, Answer

FAST: Final = {"delays": ["50ms", "50ms"]}


async def test_subscribers_are_called_in_order_and_all_successes_finish_the_job(shop: Shop) -> None:
    for path, order in (("mail", 20), ("pdf", 0), ("archive", 100), ("pay", 10)):
        await shop.subscribe(path, order=order)
    await shop.push(body="naïve 排队")
    job = await shop.becomes("finished")
    assert shop.receiver.paths == ["pdf", "pay", "mail", "archive"]
    assert {call.body.decode() for call in shop.receiver.calls} == {"naïve 排队"}
    assert list(results(job)) == ["pdf", "pay", "mail", "archive"]
    times = [(result["started"], result["ended"]) for result in job["results"]]
    assert all(started <= ended for started, ended in times)
    assert times == sorted(times)
    assert job["attempt"] == 1


async def test_one_that_fails_does_not_stop_the_others_and_only_it_is_repeated(shop: Shop) -> None:
    await shop.subscribe("one", order=1)
    shop.receiver.says("two", Answer(500, "oops"), Answer(404, "where?"), Answer(200, "thanks"))
    await shop.subscribe("two", order=2, retry=FAST)
    await shop.subscribe("three", order=3)
    await shop.push()
    job = await shop.becomes("finished")
    assert shop.receiver.paths == ["one", "two", "three", "two", "two"]
    assert results(job) == {
        "one": ("succeeded", 1, "200"),
        "two": ("succeeded", 3, "200 thanks"),
        "three": ("succeeded", 1, "200"),
    }
    assert [attempt["message"] for attempt in job["attempts"]] == [
        f"{shop.topic}/two: 500 oops",
        f"{shop.topic}/two: 404 where?",
    ]


async def test_of_two_that_failed_each_is_called_again_at_its_own_time(shop: Shop) -> None:
    shop.receiver.says("soon", Answer(500), Answer(200))
    shop.receiver.says("later", Answer(500))
    await shop.subscribe("soon", retry=FAST)
    await shop.subscribe("later", order=1, retry={"delays": ["1h"]})
    await shop.push()
    await until(lambda: len(shop.receiver.to("soon")) == 2)
    await shop.becomes("delayed")
    assert shop.receiver.paths == ["soon", "later", "soon"]


async def test_a_schedule_that_is_over_buries_the_job_with_the_messages(shop: Shop) -> None:
    shop.receiver.says("bad", Answer(500, "never"))
    shop.receiver.says("worse", Answer(400, "not me"))
    await shop.subscribe("bad", retry=FAST)
    await shop.subscribe("fine", order=5)
    await shop.subscribe("worse", order=9, retry={"delays": [0]})
    await shop.push()
    job = await shop.becomes("buried")
    assert results(job) == {
        "bad": ("failed", 3, "500 never"),
        "fine": ("succeeded", 1, "200"),
        "worse": ("failed", 2, "400 not me"),
    }
    assert job["message"] == f"{shop.topic}/bad: 500 never; {shop.topic}/worse: 400 not me"
    assert [result["due"] for result in job["results"]] == [None] * 3


async def test_a_job_with_a_schedule_of_its_own_keeps_to_it(shop: Shop) -> None:
    shop.receiver.says("bad", Answer(500))
    await shop.subscribe("bad", retry={"delays": ["1h"]})
    await shop.push(retry={"delays": ["10ms"]})
    job = await shop.becomes("buried")
    assert results(job) == {"bad": ("failed", 2, "500")}


async def test_a_call_that_takes_longer_than_the_ttr_keeps_the_job(shop: Shop) -> None:
    hold = asyncio.Event()
    shop.receiver.says("slow", Answer(hold=hold))
    await shop.subscribe("slow")
    await shop.push(ttr=4)
    await until(lambda: shop.receiver.at_once["slow"] == 1)
    await asyncio.sleep(5)
    hold.set()
    job = await shop.becomes("finished")
    assert (job["attempt"], shop.receiver.paths) == (1, ["slow"])


async def test_no_more_jobs_are_reserved_than_the_least_concurrency(shop: Shop) -> None:
    hold = asyncio.Event()
    shop.receiver.says("slow", Answer(hold=hold))
    await shop.subscribe("slow", concurrency=2)
    await shop.subscribe("other", order=1, concurrency=5)
    await asyncio.gather(*(shop.push(f"{shop.topic}-{n}") for n in range(7)))

    async def has_two_in_hand() -> bool:
        topics = (await shop.api.request("GET", "/topics")).ok()
        (mine,) = [one for one in topics if one["topic"] == shop.topic]
        assert mine["reserved"] <= 2
        return (mine["ready"], mine["reserved"]) == (5, 2)

    await until_async(has_two_in_hand)
    await until(lambda: shop.receiver.at_once["slow"] == 2)
    hold.set()
    for n in range(7):
        await shop.becomes("finished", f"{shop.topic}-{n}")
    assert shop.receiver.most_at_once["slow"] == 2


async def test_a_job_that_is_deleted_under_way_is_not_passed_on(shop: Shop) -> None:
    hold = asyncio.Event()
    shop.receiver.says("one", Answer(hold=hold))
    await shop.subscribe("one", order=1)
    await shop.subscribe("two", order=2)
    await shop.push()
    await until(lambda: shop.receiver.paths == ["one"])
    (await shop.api.delete(f"{shop.topic}-job")).ok()
    hold.set()
    await shop.push("next")
    await shop.becomes("finished", "next")
    assert shop.receiver.paths == ["one", "one", "two"]
    assert (await shop.job())["state"] == "cancelled"


async def test_one_that_is_replaced_or_dropped_while_others_are_called_is_not_called_as_it_was(
    shop: Shop,
) -> None:
    held = asyncio.Event()
    shop.receiver.says("one", Answer(hold=held))
    await shop.subscribe("one", order=1)
    replaced = await shop.subscribe("two", order=2)
    dropped = await shop.subscribe("three", order=3)
    await shop.push()
    await until(lambda: shop.receiver.paths == ["one"])
    other = {"name": replaced, "topic": shop.topic, "order": 2, "url": shop.receiver.url("other")}
    (await shop.api.call("/subscribe", other | {"if_exists": "replace"})).ok()
    (await shop.api.call("/unsubscribe", {"name": dropped})).ok()
    await shop.seen()
    held.set()
    job = await shop.becomes("finished")
    assert shop.receiver.paths == ["one", "other"]
    assert results(job) == {"one": ("succeeded", 1, "200"), "two": ("succeeded", 1, "200")}


async def test_an_endpoint_that_hangs_slows_nobody_else(shop: Shop) -> None:
    hold = asyncio.Event()
    shop.receiver.says("hangs", Answer(hold=hold))
    await shop.subscribe("hangs", concurrency=10)
    await asyncio.gather(*(shop.push(f"{shop.topic}-{n}") for n in range(50)))
    await until(lambda: shop.receiver.at_once["hangs"] == 10)
    healthy = type(shop)(shop.api, shop.receiver, f"{shop.topic}-healthy")
    await healthy.subscribe("healthy")
    await asyncio.gather(*(healthy.push(f"{healthy.topic}-{n}", delay=1) for n in range(50)))
    late_s = [
        max(0, job["started"] - job["due"])
        for job in [await healthy.becomes("finished", f"{healthy.topic}-{n}") for n in range(50)]
    ]
    assert max(late_s) < 20  # a hanging call hangs for 30 s
    assert shop.receiver.at_once["hangs"] == 10
    hold.set()


@pytest.mark.parametrize("signed", [True, False], ids=["signed", "unsigned"])
async def test_each_call_is_signed_anew_with_the_secret(shop: Shop, *, signed: bool) -> None:
    shop.receiver.says("bad", Answer(500), Answer(200))
    await shop.subscribe("bad", retry={"delays": [1.1]}, **({"secret": SECRET} if signed else {}))
    trace = f"00-{'a' * 32}-{'b' * 16}-01"
    await shop.push(body='{"n": 1}', traceparent=trace)
    await shop.becomes("finished")
    first, second = shop.receiver.calls
    assert [call.is_signed() for call in (first, second)] == [signed] * 2
    assert ("webhook-signature" in first.headers) == signed
    assert first.id == second.id == f"{shop.topic}-job"
    assert first.headers["webhook-timestamp"] != second.headers["webhook-timestamp"]
    assert first.headers["Content-Type"] == "application/json"
    assert second.headers["traceparent"] == trace
    assert [call.headers["delay-queue-attempt"] for call in (first, second)] == ["1", "2"]


async def test_a_call_that_fails_and_a_job_that_is_buried_leave_a_line_each(
    shop: Shop, server: QueueServer
) -> None:
    secret = "what the other side says"  # it would be in the log
    shop.receiver.says("bad", Answer(500, secret))
    await shop.subscribe("bad", retry={"delays": [0]})
    await shop.push(body="the body")
    job = await shop.becomes("buried")
    assert job["message"].endswith(secret)
    await until(lambda: f"job '{job['id']}' is buried" in server.logged())
    lines = [line for line in server.logged().splitlines() if job["id"] in line]
    said = f"subscriber '{shop.topic}/bad' failed with job '{job['id']}' of topic '{shop.topic}'"
    assert [line.partition(": ")[2] for line in lines] == [
        # the second attempt, within a minute, has none
        f"{said}, attempt 1, at {LOOPBACK}:{shop.receiver.port}: HTTP status 500",
        f"job '{job['id']}' is buried: its subscribers failed for good",
    ]


async def test_a_later_subscriber_is_given_what_the_earlier_ones_said(shop: Shop) -> None:
    shop.receiver.says("one", Answer(200, "I-1001"))
    shop.receiver.says("two", Answer(500, "oops"), Answer(200))
    shop.receiver.says("three", Answer(500), Answer(200))
    for number, path in enumerate(("one", "two", "three")):
        await shop.subscribe(path, order=number, retry=FAST, payload="event")
    await shop.subscribe("four", order=4)
    await shop.push(body='{"naïve": "排队"}')
    job = await shop.becomes("finished")
    one = {f"{shop.topic}/one": {"succeeded": True, "message": "200 I-1001"}}
    two = {f"{shop.topic}/two": {"succeeded": False, "message": "500 oops"}}
    two_then = {f"{shop.topic}/two": {"succeeded": True, "message": "200"}}
    told = [json.loads(call.body)["results"] for call in shop.receiver.calls if call.path != "four"]
    assert told == [{}, one, one | two, one, one | two_then]
    event = json.loads(shop.receiver.to("two")[0].body)
    assert event == {
        "topic": shop.topic,
        "id": job["id"],
        "body": '{"naïve": "排队"}',
        "attempt": 1,
        "due": job["due"] if job["attempt"] == 1 else event["due"],
        "results": one,
    }
    assert shop.receiver.to("four")[0].body == '{"naïve": "排队"}'.encode()


async def test_a_failure_that_does_not_matter_ends_the_job_as_finished(shop: Shop) -> None:
    shop.receiver.says("optional", Answer(500, "no"))
    shop.receiver.says("shaky", Answer(500), Answer(200))
    await shop.subscribe("optional", retry={"delays": []}, on_failure="continue")
    await shop.subscribe("shaky", order=1, retry=FAST)
    await shop.push()
    job = await shop.becomes("finished")
    assert results(job) == {"optional": ("failed", 1, "500 no"), "shaky": ("succeeded", 2, "200")}
    assert job["message"] == f"{shop.topic}/optional: 500 no"


async def test_one_whose_failure_matters_buries_the_job_beside_one_whose_does_not(
    shop: Shop,
) -> None:
    for path, on_failure in (("optional", "continue"), ("needed", "bury")):
        shop.receiver.says(path, Answer(500))
        await shop.subscribe(path, retry={"delays": [0]}, on_failure=on_failure)
    await shop.push()
    job = await shop.becomes("buried")
    assert results(job) == {"optional": ("failed", 2, "500"), "needed": ("failed", 2, "500")}
