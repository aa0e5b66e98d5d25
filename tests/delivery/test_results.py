"""A result that a later subscriber gets is handed on as a whole, or its attempt has failed."""

import asyncio
import json
from typing import Final

import pytest

from delayqueue.delivery.outcome import RESULT_BYTES, TOO_LONG
from delayqueue.domain.job import MAX_MESSAGE_CHARS
from tests.waiting import until

from .conftest import Shop, results
from .receiver import Answer
from .strangers import Endless, sending

LONG: Final = json.dumps(["é" * 30_000], ensure_ascii=False)  # 60 kB
TOO_LONG_BY_ONE: Final = "x" * (RESULT_BYTES + 1)
REASON: Final = f"its result, which others get, {TOO_LONG}"


async def test_a_webhook_gets_all_of_an_earlier_result_in_later_rounds_too(shop: Shop) -> None:
    shop.receiver.says("first", Answer(200, LONG))
    shop.receiver.says("second", Answer(500), Answer(200, LONG))
    await shop.subscribe("first")
    await shop.subscribe("second", order=1, payload="event", retry={"delays": [0]})
    await shop.push()
    job = await shop.becomes("finished")
    for call in shop.receiver.to("second"):
        (given,) = json.loads(call.body)["results"].values()
        assert given == {"succeeded": True, "message": f"200 {LONG}"}
    assert len(shop.receiver.to("second")) == 2
    assert results(job)["first"] == ("succeeded", 1, f"200 {LONG}")
    assert len(results(job)["second"][2]) == MAX_MESSAGE_CHARS, "nobody gets that of the last one"


async def test_a_result_that_is_too_long_to_be_handed_on_has_failed(shop: Shop) -> None:
    shop.receiver.says("first", Answer(200, TOO_LONG_BY_ONE), Answer(200, TOO_LONG_BY_ONE[1:]))
    await shop.subscribe("first", retry={"delays": [0]})
    await shop.subscribe("second", order=1, payload="event")
    await shop.push()
    job = await shop.becomes("finished")
    assert [attempt["message"] for attempt in job["attempts"]] == [f"{shop.topic}/first: {REASON}"]
    assert results(job)["first"] == ("succeeded", 2, f"200 {TOO_LONG_BY_ONE[1:]}")
    (called,) = shop.receiver.to("second")
    (given,) = json.loads(called.body)["results"].values()
    assert given == {"succeeded": False, "message": REASON}


@pytest.mark.parametrize("paused", ["first", "second"])
async def test_a_result_is_handed_on_as_a_whole_if_a_subscriber_is_paused_meanwhile(
    shop: Shop, paused: str
) -> None:
    held = asyncio.Event()
    shop.receiver.says("first", Answer(200, LONG, hold=held))
    await shop.subscribe("first")
    await shop.subscribe("second", order=1, payload="event")
    await shop.push()
    await until(lambda: bool(shop.receiver.to("first")))
    name = {"name": f"{shop.topic}/{paused}"}
    (await shop.api.call("/pause-subscriber", name)).ok()
    await shop.seen()
    held.set()
    await shop.becomes("ready")
    (await shop.api.call("/resume-subscriber", name)).ok()
    await shop.becomes("finished")
    (called,) = shop.receiver.to("second")
    (given,) = json.loads(called.body)["results"].values()
    assert given == {"succeeded": True, "message": f"200 {LONG}"}


async def test_half_an_answer_is_not_handed_on(shop: Shop) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nConnection: close\r\n\r\n[1, "
    with sending(Endless(head, b""), lasts_s=0) as stranger:
        await shop.subscribe(
            "first", url=f"http://127.0.0.1:{stranger.port}/", retry={"delays": []}
        )
        await shop.subscribe("second", order=1, payload="event", retry={"delays": []})
        await shop.push()
        job = await shop.becomes("buried")
    assert results(job)["first"] == ("failed", 1, "its result, which others get, broke off")


@pytest.mark.parametrize("payload", ["body", None])
async def test_a_long_answer_that_nobody_gets_is_a_success(shop: Shop, payload: str | None) -> None:
    shop.receiver.says("first", Answer(200, TOO_LONG_BY_ONE))
    await shop.subscribe("first")
    if payload:
        await shop.subscribe("second", order=1, payload=payload)
    await shop.push()
    job = await shop.becomes("finished")
    status, attempts, message = results(job)["first"]
    assert (status, attempts, len(message)) == ("succeeded", 1, MAX_MESSAGE_CHARS)
