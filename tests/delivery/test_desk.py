"""What an operator does with subscribers: try one, pause it, see how its calls went."""

import asyncio
import json

from tests.api_client import Json, open_api
from tests.processes import Processes, StoreServer
from tests.waiting import until

from .conftest import Shop, results
from .receiver import SECRET, Answer, Receiver


async def shown(shop: Shop) -> Json:
    """The topic's only subscriber, with its calls."""
    (found,) = (await shop.api.call("/subscribers", {"topic": shop.topic, "calls": True})).ok()
    one: Json = found
    return one


async def test_a_trial_calls_the_url_with_a_marked_job_and_changes_nothing(shop: Shop) -> None:
    name = await shop.subscribe("try", secret=SECRET, payload="event", expect="success")
    shop.receiver.says("try", Answer(200, "success"), Answer(410, "gone"), Answer(200, "no"))
    tried = (await shop.api.call("/try-subscriber", {"name": name, "body": "排队"})).ok()
    (call,) = shop.receiver.to("try")
    assert call.is_signed()
    assert call.headers["delay-queue-trial"] == "1"
    sent = json.loads(call.body)
    assert (sent["body"], sent["trial"], sent["id"][:6]) == ("排队", True, "trial-")
    assert 0 < tried.pop("took") < 30
    assert tried == {"succeeded": True, "status": 200, "message": "200 success"}
    gone = (await shop.api.call("/try-subscriber", {"name": name})).ok()
    assert (gone["succeeded"], gone["status"]) == (False, 410)
    other = (await shop.api.call("/try-subscriber", {"name": name})).ok()
    assert (other["succeeded"], other["message"]) == (False, "not success: 200 no")
    assert (await shown(shop))["calls"] == {
        "succeeded": 0,
        "failed": 0,
        "took": None,
        "failures": [],
    }  # and the one that answered 410 is still there
    [counts] = (await shop.api.call("/topics", {"topics": [shop.topic]})).ok()
    assert {counts[state] for state in ("delayed", "ready", "reserved", "buried")} == {0}


async def test_a_trial_goes_to_no_address_that_is_not_allowed(
    processes: Processes, redis_server: StoreServer, receiver: Receiver, topic: str
) -> None:
    database = redis_server.new_database()
    free, strict = (
        processes.server(redis_server, redis__db=database, webhook_allow=allowed)
        for allowed in ("127.0.0.1/32", "")
    )
    async with open_api(free.url) as api, open_api(strict.url) as other:
        name = await Shop(api, receiver, topic).subscribe("x")
        tried = (await other.call("/try-subscriber", {"name": name})).ok()
    assert (tried["succeeded"], tried["status"]) == (False, 0)
    assert "127.0.0.1 is not a public address" in tried["message"]
    assert receiver.calls == []


async def test_jobs_wait_for_a_paused_subscriber_and_none_is_called_twice(shop: Shop) -> None:
    held = asyncio.Event()
    shop.receiver.says("first", Answer(hold=held))
    await shop.subscribe("first", order=1)
    paused = await shop.subscribe("second", order=2)
    await shop.push("one")
    await until(lambda: bool(shop.receiver.to("first")))
    for _ in range(2):  # the second time changes nothing
        (await shop.api.call("/pause-subscriber", {"name": paused})).ok()
    await shop.seen()
    held.set()
    assert (await shop.becomes("ready", "one"))["results"][0]["status"] == "succeeded"
    await shop.push("two")
    again = {"name": paused, "topic": shop.topic, "url": shop.receiver.url("second"), "order": 2}
    (await shop.api.call("/subscribe", again | {"timeout": 5, "if_exists": "replace"})).ok()
    await shop.seen()
    assert (await shop.job("two"))["attempt"] == 0
    assert shop.receiver.paths == ["first"]
    (await shop.api.call("/resume-subscriber", {"name": paused})).ok()
    for job_id in ("one", "two"):
        done = await shop.becomes("finished", job_id)
        assert [attempts for _, attempts, _ in results(done).values()] == [1, 1]
    assert sorted(shop.receiver.paths) == ["first", "first", "second", "second"]


async def test_calls_of_a_day_are_counted_and_the_last_failures_told(shop: Shop) -> None:
    name = await shop.subscribe("x", retry={"delays": [0.01] * 6})
    shop.receiver.says("x", *(Answer(500, f"no {n}" + "界" * 999) for n in range(6)), Answer())
    job_id = await shop.push()
    await shop.becomes("finished")
    one = await shown(shop)
    assert one["paused"] is None
    calls = one["calls"]
    assert (calls["succeeded"], calls["failed"], calls["took"] > 0) == (1, 6, True)
    assert [failure["id"] for failure in calls["failures"]] == [job_id] * 5
    said = [failure["message"] for failure in calls["failures"]]
    assert [each[:8] for each in said] == [f"500 no {n}" for n in (5, 4, 3, 2, 1)]
    assert {len(each) for each in said} == {8 + 130}  # whole characters, 400 bytes at most
    (await shop.api.call("/pause-subscriber", {"name": name})).ok()
    assert (await shown(shop))["paused"] > calls["failures"][0]["at"]
