"""Subscribing at run time: which URLs are called, what is refused, and that all servers know."""

import asyncio
from ipaddress import ip_address
from typing import Any, Final

import pytest

from delayqueue.domain.troubles import FAILS_AFTER
from tests.api_client import Api, Json, open_api
from tests.figures import scrape
from tests.processes import Processes, StoreServer
from tests.waiting import until, until_async

from .conftest import Shop
from .receiver import SECRET, Answer, Receiver

MAPPED: Final = ip_address("::ffff:10.0.0.1")  # Python 3.13 writes it so, 3.12 as ::ffff:a00:1


def subscription(topic: str, /, **fields: Any) -> Json:
    return {"name": f"{topic}/s", "topic": topic, "url": "http://h.example/x"} | fields


async def test_a_subscriber_is_shown_without_its_secret(api: Api, topic: str) -> None:
    given = subscription(
        topic, order=5, timeout=2.5, retry={"delays": ["1m", 2]}, concurrency=3, secret=SECRET
    ) | {"method": "PUT", "headers": {"X-Key": "hush"}}
    (await api.call("/subscribe", given)).ok()
    answer = await api.call("/subscribers", {"topic": topic})
    assert SECRET not in str(answer)
    assert "hush" not in str(answer)
    assert answer.ok() == [
        {
            "name": f"{topic}/s",
            "topic": topic,
            "order": 5,
            "url": "http://h.example/x",
            "handler": "",
            "timeout": 2.5,
            "retry": [60.0, 2.0],
            "concurrency": 3,
            "signed": True,
            "declared": False,
            "expect": "",
            "on_failure": "bury",
            "payload": "body",
            "method": "PUT",
            "headers": {"X-Key": "***"},
            "paused": None,
        }
    ]


async def test_a_webhook_has_the_method_and_the_headers_that_were_given(shop: Shop) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded", "Authorization": "Bearer abc"}
    name = await shop.subscribe("a", method="PUT", headers=form)
    await shop.push("1", body="a=1&b=2")
    await shop.becomes("finished", "1")
    change = {"name": name, "if_exists": "change"}
    (await shop.api.call("/subscribe", change | {"method": "PATCH"})).ok()
    await shop.seen()
    await shop.push("2")
    await shop.becomes("finished", "2")
    (await shop.api.call("/subscribe", change | {"headers": {}})).ok()
    await shop.seen()
    await shop.push("3")
    await shop.becomes("finished", "3")
    put, patch, last = shop.receiver.to("a")
    for call in (put, patch):
        assert form.items() <= dict(call.headers).items()
    assert (put.method, put.body) == ("PUT", b"a=1&b=2")
    assert (patch.method, last.method) == ("PATCH", "PATCH")
    assert "Authorization" not in last.headers
    assert last.headers["Content-Type"] == "application/json"


async def test_as_many_polls_as_may_wait_keep_no_job_from_its_subscriber(
    processes: Processes, redis_server: StoreServer, receiver: Receiver, topic: str
) -> None:
    server = processes.server(redis_server, max_polls=1, webhook_allow="127.0.0.1/32")
    async with open_api(server.url) as api:
        poll = asyncio.create_task(api.pop("other", timeout=60))
        await until_async(lambda: waits(api))
        shop = Shop(api, receiver, topic)
        await shop.subscribe("x")
        await shop.push()
        await shop.becomes("finished")
        assert not poll.done()
        (await api.pop("a third one", timeout=1)).refused(10, status=429)
        (await api.push(topic="other", id=f"{topic}-other")).ok()
        assert (await poll).ok()["id"] == f"{topic}-other"


async def waits(api: Api) -> bool:
    """Whether a poll waits."""
    return (await scrape(api)).sum("delayqueue_waiting_polls") == 1


async def test_who_is_unsubscribed_is_called_no_more(shop: Shop) -> None:
    name = await shop.subscribe("once")
    await shop.push("first")
    await shop.becomes("finished", "first")
    (await shop.api.call("/unsubscribe", {"name": name})).ok()
    assert (await shop.api.call("/unsubscribe", {"name": name})).refused(2) == (
        f"{name}: no such subscriber"
    )
    await shop.subscribe("other")
    await shop.push("second")
    await shop.becomes("finished", "second")
    assert shop.receiver.paths == ["once", "other"]


async def test_the_trouble_of_a_subscriber_is_over_when_it_is_unsubscribed(shop: Shop) -> None:
    async def is_reported() -> bool:
        troubles = (await shop.api.call("/stats", {})).ok()["troubles"]
        return any(one["name"] == name for one in troubles)

    async def is_over() -> bool:
        return not await is_reported()

    name = await shop.subscribe("broken", retry={"delays": [0.01] * FAILS_AFTER})
    shop.receiver.says("broken", Answer(500))
    await shop.push()
    await until_async(is_reported)
    (await shop.api.call("/unsubscribe", {"name": name})).ok()
    await until_async(is_over)


@pytest.mark.parametrize("status", [410, 500])
async def test_calls_under_way_to_a_subscriber_that_is_unsubscribed_are_no_trouble(
    shop: Shop, status: int
) -> None:
    async def reported() -> set[str]:
        troubles = (await shop.api.call("/stats", {})).ok()["troubles"]
        return {one["name"] for one in troubles} & {gone, broken}

    async def is_the_broken_one() -> bool:
        return broken in await reported()

    hold = asyncio.Event()
    delays = {"delays": [0.01] * FAILS_AFTER}
    gone = await shop.subscribe("gone", concurrency=2 * FAILS_AFTER, retry=delays)
    shop.receiver.says("gone", Answer(status, hold=hold))
    ids = [await shop.push(f"{shop.topic}-{number}") for number in range(2 * FAILS_AFTER)]
    await until(lambda: shop.receiver.at_once["gone"] == len(ids))
    if status != 410:
        (await shop.api.call("/unsubscribe", {"name": gone})).ok()
        await shop.seen()
    hold.set()
    for job_id in ids:
        await shop.becomes("ready", job_id)
    broken = await shop.subscribe("broken", retry=delays)
    shop.receiver.says("broken", Answer(500))
    await until_async(is_the_broken_one)
    assert await reported() == {broken}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"url": "http://127.0.0.2/"}, "url: 127.0.0.2 is not a public address and webhook_allow"),
        ({"url": "https://10.1.2.3:8/x"}, "url: 10.1.2.3 is not a public address"),
        ({"url": "http://[::1]/"}, "url: ::1 is not a public address"),
        ({"url": f"http://[{MAPPED}]/"}, f"url: {MAPPED} is not a public address"),
        ({"url": "http://u@169.254.169.254/"}, "url: 169.254.169.254 is not a public address"),
        ({"url": "http://2130706434/"}, "url: 127.0.0.2 is not a public address"),
        ({"url": "http://0x7f.2/"}, "url: 127.0.0.2 is not a public address"),
        ({"url": "http://127.0.0.2./"}, "url: 127.0.0.2 is not a public address"),
        ({"url": "http://１２７。0。0。2/"}, "url: 127.0.0.2 is not a public address"),
        ({"url": "http://h.example\\x/"}, "url: has no host"),
    ],
)
async def test_a_url_that_must_not_be_called_is_refused(
    api: Api, topic: str, fields: dict[str, Any], message: str
) -> None:
    refused = (await api.call("/subscribe", subscription(topic, **fields))).refused()
    assert refused.startswith(message)
    assert (await api.call("/subscribers", {"topic": topic})).ok() == []


async def test_other_servers_know_of_it_soon(
    processes: Processes, redis_server: StoreServer, receiver: Receiver, topic: str
) -> None:
    database = redis_server.new_database()
    one, other = (
        processes.server(redis_server, redis__db=database, webhook_allow="127.0.0.1/32")
        for _ in range(2)
    )
    async with open_api(one.url) as api:
        shop = Shop(api, receiver, topic)
        await shop.subscribe("x")
        one.kill()
    async with open_api(other.url) as api:
        shop = Shop(api, receiver, topic)
        await shop.push()
        await shop.becomes("finished", within_s=20)
    assert other.stop() == 0
