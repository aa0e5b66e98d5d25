"""Ids, topics and bodies are bytes of the user's: none of them reaches another job or is changed on its way."""

import json
import random
from collections.abc import AsyncIterator, Callable
from typing import Final

import pytest

from tests.api.jobs import take, until_ready
from tests.api_client import Api, open_api
from tests.processes import Processes

from .conftest import ONE_BUCKET, SETUPS, in_one_setup, started

Name = Callable[[str], str]

NAMES: Final = {
    "the original's bucket key": "dq_bucket_1",
    "the original's queue key": "dq_queue_order",
    "key of all jobs": "{dq_bucket_1}:job",
    "key of the timers": "{dq_bucket_1}:timers",
    "key of a topic": "{dq_bucket_1}:delay:innocent",
    "key of a ready list": "{dq_bucket_1}:dq_queue_innocent",
    "another hash tag": "{other}",
    "open brace": "{",
    "closed before open": "}{",
    "colons": ":::",
    "glob": "*?[a-z]",
    "star in it": "**",
    "format of the queue name": "%s%d%",
    "Lua's patterns": "(.-)%1",
    "new line": "a\nb",
    "CRLF and a command": "a\r\nDEL innocent\r\n",
    "the protocol of Redis": "$3\r\nDEL",
    "NUL": "a\0b",
    "only control characters": "\x01\x02\x7f",
    "4-byte UTF-8": "😀\U0010ffff",
    "combining marks": "e\u0301",
    "composed twin of the former": "é",
    "right to left": "\u202eabc",
    "Chinese": "订单",
    "path": "../../etc/passwd",
    "HTML": "<script>alert(1)</script>",
    "SQL": "'; DROP TABLE jobs; --",
    "quotes": "\"'`\\",
    "spaces within": "a  b",
    "a number": "0",
    "a negative number": "-1",
    "JSON's null": "null",
    "Lua's nil": "nil",
    "not a number": "nan",
    "looks like a record": '0!!!!!#z!!!!!#z!!!#z!"t',
    "looks like a receipt": "-",
}
cases = pytest.mark.parametrize("hostile", NAMES.values(), ids=NAMES.keys())


# with four buckets and a wheel they take the same ways, and more besides; tests/store tries them on sorted sets
IN_ONE_BUCKET: Final = pytest.param(ONE_BUCKET, id="redis", marks=pytest.mark.seldom)


@pytest.fixture(scope="module", params=[IN_ONE_BUCKET, *SETUPS[1:]])
def innocent_url(request: pytest.FixtureRequest, processes: Processes) -> str:
    """A server of this module alone, since the hostile topics are not unique."""
    return started(request, processes, request.param).url


@pytest.fixture
async def hostile_api(innocent_url: str) -> AsyncIterator[Api]:
    """A client; afterwards the innocent jobs must be as they were."""
    async with open_api(innocent_url) as client:
        before = await push_innocents(client)
        yield client
        assert (await client.call("/get", {"ids": INNOCENT_IDS})).ok() == before
        assert (await client.pop("innocent", timeout=0)).ok()["id"] == "innocent-ready"
        (await client.call("/delete", {"ids": INNOCENT_IDS})).ok()


INNOCENT_IDS: Final = ["innocent-delayed", "innocent-reserved", "innocent-ready", "innocent"]


async def push_innocents(api: Api) -> object:
    delayed, reserved, ready, other = INNOCENT_IDS
    (await api.push(topic="innocent", id=delayed, delay=3600, body="1")).ok()
    (await api.push(topic="innocent", id=reserved, body="2")).ok()
    assert (await api.pop("innocent")).ok()["id"] == reserved
    (await api.push(topic="innocent", id=ready, body="3")).ok()
    (await api.push(topic="other", id=other, delay=3600, body="4")).ok()
    await until_ready(api, ready)
    return (await api.call("/get", {"ids": INNOCENT_IDS})).ok()


@cases
async def test_a_hostile_topic_and_id_live_a_jobs_life(hostile_api: Api, hostile: str) -> None:
    (await hostile_api.push(topic=hostile, id=hostile, delay=3600, body=hostile)).ok()
    assert (await hostile_api.get(hostile)).ok()["state"] == "delayed"
    (await hostile_api.push(topic=hostile, id=hostile, body=hostile)).ok()
    job = (await hostile_api.pop(hostile)).ok()
    stripped = hostile.strip("\r\n")  # names lose their outer white space, bodies do not
    assert (job["topic"], job["id"], job["body"]) == (stripped, stripped, hostile)
    (await hostile_api.finish(hostile)).ok()
    assert (await hostile_api.get(hostile)).ok() is None
    assert (await hostile_api.pop(hostile, timeout=0)).ok() is None


async def test_hostile_ids_side_by_side_are_different_jobs(hostile_api: Api) -> None:
    names = [name.strip("\r\n") for name in NAMES.values()]
    jobs = [{"topic": "side by side", "id": name, "body": name} for name in names]
    (await hostile_api.push_all(jobs)).ok()
    taken = await take(hostile_api, "side by side", len(names))
    assert sorted((job["id"], job["body"]) for job in taken) == sorted(
        (name, name) for name in names
    )
    (await hostile_api.call("/finish", {"ids": names})).ok()


BODIES: Final = {
    "outer spaces": "  \t x \n\r\n ",
    "only a space": " ",
    "empty": "",
    "NUL": "\0 a \0\0",
    "4-byte UTF-8": "😀𝄞\U0010ffff",
    "quotes and backslashes": '"\'\\\\\\"/',
    "JSON": '{"uid": 1, "list": [1.50, "\\u0000"]}',
    "all ASCII": "".join(map(chr, range(128))),
    "line separators": "\u2028\u2029\u0085",
    "not normalised": "e\u0301\ufeff\ufffe\uffff",
    "looks like a record": "1!!!!!#z!!!!!#z!!!#z!&!!!!!!!!!!!!!!!!!!#topic{}",
    "a long one": "".join(random.Random(1).choices("aé订😀\n\0 ", k=200_000)),
}


@in_one_setup
@pytest.mark.parametrize("escaped", [True, False], ids=["escaped", "as UTF-8"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
async def test_a_body_comes_back_as_it_was_sent(
    api: Api, topic: str, name: Name, body: str, *, escaped: bool
) -> None:
    job = {"topic": topic, "id": (job_id := name("id")), "ttr": 60, "body": body}
    content = json.dumps(job, ensure_ascii=escaped).encode()
    (await api.request("POST", "/push", content)).ok()
    assert (await api.get(job_id)).ok()["body"] == body
    assert (await api.pop(topic)).ok()["body"] == body
