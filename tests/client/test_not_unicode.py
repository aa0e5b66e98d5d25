"""Text that UTF-8 cannot hold is refused in words, by both clients, the command line and the outbox."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any, Final

import pytest

from delayqueue import outbox
from delayqueue.client import AsyncClient, Invalid, Job
from delayqueue.domain.text import not_unicode
from delayqueue.testing import Queue
from tests.client.conftest import Caller
from tests.processes import REPOSITORY, QueueServer

HALF: Final = "x\ud800"
WHY: Final = r"text that is not valid Unicode: \ud800, half of a surrogate pair, at character "

CALLS: Final[dict[str, tuple[Callable[[Any], Any], str]]] = {
    "a topic": (lambda queue: queue.push(HALF), f"topic: {WHY}2"),
    "an id": (lambda queue: queue.push("t", id=HALF), f"id: {WHY}2"),
    "a body": (lambda queue: queue.push("t", HALF), f"body: {WHY}2"),
    "a body of JSON": (lambda queue: queue.push("t", {"a": HALF}), f"body: {WHY}8"),
    "a tag": (lambda queue: queue.push("t", tags=["a", HALF]), f"tags.1: {WHY}2"),
    "a name in a call": (
        lambda queue: queue.push("t", call={"url": "http://x", "headers": {HALF: "secret"}}),
        f"call.headers: {WHY}2",
    ),
    "one of many": (
        lambda queue: queue.push_many([Job(topic="t"), Job(topic="t", body=HALF)]),
        f"1.body: {WHY}2",
    ),
    "an id to get": (lambda queue: queue.get(HALF), f"id: {WHY}2"),
    "a topic to pop": (lambda queue: queue.pop(HALF), f"topic: {WHY}2"),
    "a tag to cancel": (lambda queue: queue.cancel(HALF), f"tag: {WHY}2"),
    "a message": (lambda queue: queue.bury("a", message=HALF), f"message: {WHY}2"),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_text_that_is_not_valid_unicode_is_refused_by_name(
    client: Caller, name: str
) -> None:
    call, why = CALLS[name]
    with pytest.raises(ValueError, match=f"^{re.escape(why)}$"):
        await call(client)


@pytest.mark.parametrize("bad", [{"body": HALF}, {"priority": object()}], ids=["text", "type"])
async def test_jobs_of_the_same_moment_are_pushed_beside_one_that_cannot_be_sent(
    queue: AsyncClient, topic: str, bad: Any
) -> None:
    done = await asyncio.gather(
        *(queue.push(topic, "good") for _ in range(3)),
        queue.push(topic, **bad),
        return_exceptions=True,
    )
    assert [type(one) for one in done[:3]] == [str] * 3
    assert isinstance(done[3], (ValueError, TypeError))
    assert len(await queue.pop_many(topic, count=9, wait=20)) == 3


@pytest.mark.parametrize(
    "field", [{"body": HALF}, {"id": HALF}, {"tags": [HALF]}, {"topic": HALF}], ids=str
)
def test_the_stand_in_and_the_outbox_refuse_it_too(field: Any) -> None:
    job = {"topic": "t"} | field
    with pytest.raises((ValueError, Invalid), match="text that is not valid Unicode"):
        Queue().push(**job)
    with pytest.raises(ValueError, match="text that is not valid Unicode"):
        outbox.push(None, Job(**job))
    with pytest.raises(ValueError, match="id: text that is not valid Unicode"):
        outbox.cancel(None, HALF)


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (["push", "t", "BAD"], "body"),
        (["push", "BAD"], "topic"),
        (["push", "t", "--id", "BAD"], "id"),
        (["push", "t", "--tag", "BAD"], "tags.0"),
        (["get", "BAD"], "id"),
        (["cancel", "BAD"], "tag"),
    ],
    ids=" ".join,
)
def test_an_argument_that_is_not_utf8_is_a_usage_error(
    server: QueueServer, words: list[str], field: str
) -> None:
    program = [sys.executable, "-m", "delayqueue", *words, "--url", server.url]
    ended = subprocess.run(
        [b"caf\xe9" if word == "BAD" else os.fsencode(word) for word in program],
        cwd=REPOSITORY,
        capture_output=True,
        timeout=180,
        check=False,
    )
    said = ended.stderr.decode()
    assert ended.returncode == 2
    assert said == (
        f"delay-queue: {field}: text that is not valid Unicode: the byte 0xe9 at character 4\n"
    )


def test_what_utf8_can_hold_is_unicode() -> None:
    for text in ("", "tea", "thé 😀 \x00\uffff", "\U0010ffff"):
        assert not_unicode(text) is None
    assert not_unicode("😀\udfff") == WHY.replace("ud800", "udfff") + "2"
