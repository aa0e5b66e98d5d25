"""The edges of every number and length: the last value that works, and the first that is refused."""

import asyncio
import json
import math
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import pytest

from delayqueue.web.endpoints import ENDPOINTS
from tests.api_client import INVALID, TOO_LARGE, UNAVAILABLE, Api, Json, open_api
from tests.processes import LOOPBACK, Processes, QueueServer, StoreServer

from .conftest import in_one_setup

Name = Callable[[str], str]

MIB: Final = 1 << 20
MOST_SENT_MIB: Final = 64
HEAD: Final = b"POST /push HTTP/1.1\r\nHost: test\r\n"
QUEUE_BLOCK_TIMEOUT_S: Final = 178  # the default

# of 256 bytes, as topics may have them; ids may be four times as long
LONGEST_NAMES: Final = {
    "ASCII": "x" * 256,
    "2-byte": "é" * 128,
    "3-byte": "订" * 85 + "x",
    "4-byte": "😀" * 64,
    "outer white space is not counted": " " + "x" * 256 + "\t",
}
LONG_VALUES: Final = {
    "text": "x" * 100_000,
    "text that is escaped": "\1" * 1000,
    "whole number": int("9" * 4000),
    "delays": {"delays": ["x" * 100_000]},
}
LONG_RETRIES: Final = {
    "preset": {"preset": "x" * 100_000},
    "max": {"max": int("9" * 4000), "base": 1},
    "base": {"base": "x" * 100_000, "max": 2},
}
TOO_LONG_NAMES: Final = {
    "ASCII": "x" * 257,
    "2-byte": "é" * 128 + "x",
    "3-byte": "订" * 86,
    "4-byte": "😀" * 64 + "x",
    "long": "x" * 100_000,
}


@pytest.mark.parametrize("long", LONGEST_NAMES.values(), ids=LONGEST_NAMES.keys())
async def test_topics_of_256_and_ids_of_1024_bytes_work(api: Api, long: str) -> None:
    long_id = long.strip() * 4
    (await api.push(topic=long, id=f" {long_id}", body="x")).ok()
    assert (await api.get(long_id)).ok()["id"] == long_id
    assert (await api.pop(long)).ok()["topic"] == long.strip()
    (await api.finish(long_id)).ok()
    assert (await api.get(long_id)).ok() is None


async def listed(api: Api, listing: Json) -> set[str]:
    """The ids of a list, one job a page: a cursor may have to hold an id."""
    ids, cursor, pages = set(), "", 0
    while not pages or cursor:
        page = (await api.call("/list", {**listing, "limit": 1, "cursor": cursor})).ok()
        ids |= {job["id"] for job in page["jobs"]}
        cursor, pages = page["cursor"], pages + 1
    return ids


@pytest.mark.parametrize(
    "long",
    [*LONGEST_NAMES.values(), "a" + "\1" * 255],
    ids=[*LONGEST_NAMES.keys(), "characters that JSON escapes"],
)
async def test_every_verb_takes_an_id_of_1024_bytes(api: Api, topic: str, long: str) -> None:
    long_id = long.strip() * 4

    async def ask(verb: str, **request: Any) -> Any:
        return (await api.call(verb, {"id": long_id, **request})).ok()

    (await api.push(topic=topic, id=long_id, delay=3600, tags=[topic])).ok()
    await ask("/reschedule", delay=1800)
    await ask("/kick")
    reserved = (await api.pop(topic)).ok()
    assert reserved["id"] == long_id
    await ask("/touch", receipt=reserved["receipt"], ttr=60)
    await ask("/release", receipt=reserved["receipt"], delay=0)
    assert (await api.pop(topic)).ok()["id"] == long_id
    await ask("/bury", message="no")
    (await api.push(topic=topic, id=long_id[:-1] + "z", delay=3600, tags=[topic])).ok()
    for listing in ({"topic": topic}, {"tag": topic}):
        assert long_id in await listed(api, listing)
    await ask("/delete")
    assert await ask("/get") is None


@in_one_setup
@pytest.mark.parametrize("long", TOO_LONG_NAMES.values(), ids=TOO_LONG_NAMES.keys())
async def test_longer_names_are_refused(api: Api, topic: str, long: str) -> None:
    long_id = long * 4
    (await api.push(topic=topic, id=long_id)).refused()
    (await api.push(topic=long, id=topic)).refused()
    (await api.pop(long, timeout=0)).refused()
    (await api.pop(f"{topic},{long}", timeout=0)).refused()
    for verb in ("/get", "/finish", "/delete"):
        (await api.call(verb, {"id": long_id})).refused()


@in_one_setup
@pytest.mark.parametrize("path", [each.path for each in ENDPOINTS if each.takes])
async def test_a_message_repeats_no_more_than_the_beginning_of_a_value(
    api: Api, topic: str, path: str
) -> None:
    [takes] = [each.takes for each in ENDPOINTS if each.path == path]
    assert takes is not None
    usual = {"topic": topic, "id": topic, "ttr": 60, "timeout": 0, "retry": None}
    request = {name: usual[name] for name in usual if name in takes.model_fields}
    for field in takes.model_fields:
        for what, sent in (LONG_VALUES | (LONG_RETRIES if field == "retry" else {})).items():
            answer = await api.call(path, request | {field: sent}, {"Accept-Language": "en"})
            assert answer.code != UNAVAILABLE
            assert len(answer.message) < 300, (field, what, answer.message[:300])


async def test_a_body_of_max_body_works(api: Api, topic: str, name: Name) -> None:
    body = "é" * (MIB // 2)
    (await api.push(topic=topic, id=name("id"), body=body)).ok()
    assert (await api.pop(topic)).ok()["body"] == body


@pytest.mark.parametrize(
    "body", ["x" * (MIB + 1), "é" * (MIB // 2) + "x"], ids=["1-byte", "2-byte"]
)
async def test_a_body_over_max_body_is_too_large(
    api: Api, topic: str, name: Name, body: str
) -> None:
    answer = await api.push(topic=topic, id=(job_id := name("id")), body=body)
    answer.refused(TOO_LARGE, status=413)
    assert (await api.get(job_id)).ok() is None


async def test_a_body_over_max_body_fails_alone_in_an_array(
    api: Api, topic: str, name: Name
) -> None:
    ids = [name("id") for _ in range(3)]
    jobs: list[dict[str, Any]] = [{"topic": topic, "id": i, "delay": 3600} for i in ids]
    jobs[1]["body"] = "x" * (MIB + 1)
    assert [r["code"] for r in (await api.push_all(jobs)).ok()] == [0, TOO_LARGE, 0]
    found = (await api.call("/get", {"ids": ids})).ok()
    assert [job and job["id"] for job in found] == [ids[0], None, ids[2]]


async def test_max_body_can_be_set(
    processes: Processes, redis_server: StoreServer, topic: str
) -> None:
    server = processes.server(redis_server, max_body=2000)
    async with open_api(server.url) as api:
        (await api.push(topic=topic, id="fits", body="x" * 2000)).ok()
        (await api.push(topic=topic, id="too long", body="x" * 2001)).refused(TOO_LARGE, status=413)
    server.close()


@pytest.mark.parametrize("chunked", [False, True], ids=["with its length", "chunked"])
async def test_a_huge_request_is_refused_long_before_its_end(
    server: QueueServer, *, chunked: bool
) -> None:
    length = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % (1024 * MIB)
    piece = b"100000\r\n" + b" " * MIB + b"\r\n" if chunked else b" " * MIB
    reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
    try:
        writer.write(HEAD + length + b"\r\n\r\n")
        answering = asyncio.create_task(read_answer(reader))
        for _ in range(MOST_SENT_MIB):
            if answering.done():
                break
            writer.write(piece)
            with suppress(ConnectionError):
                await writer.drain()
        status, answer = await answering
    finally:
        writer.transport.abort()
    assert (status, answer["code"], answer["data"]) == (413, TOO_LARGE, None)


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, Json]:
    """Status and envelope of an answer that may come before the request is complete."""
    head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)).decode()
    length = next(
        int(line.partition(":")[2])
        for line in head.splitlines()
        if line.lower().startswith("content-length:")
    )
    return int(head.split()[1]), json.loads(await reader.readexactly(length))


async def test_more_than_1000_jobs_are_refused_and_none_is_kept(
    api: Api, topic: str, name: Name
) -> None:
    prefix = name("id")
    jobs = [{"topic": topic, "id": f"{prefix}/{n}"} for n in range(1001)]
    answer = await api.push_all(jobs)
    assert answer.code in {INVALID, TOO_LARGE}
    assert answer.data is None
    found = (await api.call("/get", {"ids": [job["id"] for job in jobs[:1000]]})).ok()
    assert found == [None] * 1000


@in_one_setup
@pytest.mark.parametrize("verb", ["/get", "/finish", "/delete"])
async def test_more_than_1000_ids_are_refused(api: Api, topic: str, name: Name, verb: str) -> None:
    job_id = name("id")
    (await api.push(topic=topic, id=job_id, delay=3600)).ok()
    answer = await api.call(verb, {"ids": [job_id] * 1001})
    assert answer.code in {INVALID, TOO_LARGE}
    assert (await api.get(job_id)).ok() is not None


async def test_a_pop_of_64_topics_works(api: Api, topic: str, name: Name) -> None:
    (await api.push(topic=topic, id=(job_id := name("id")))).ok()
    topics = [*(f"{topic}/{n}" for n in range(63)), topic]
    assert (await api.pop(",".join(topics))).ok()["id"] == job_id


@in_one_setup
async def test_a_pop_of_more_than_64_topics_is_refused(api: Api, topic: str) -> None:
    (await api.pop(",".join(f"{topic}/{n}" for n in range(65)), timeout=0)).refused()


@in_one_setup
@pytest.mark.parametrize("comma", ["a,b", ",", "a,", ",a"])
async def test_a_topic_with_a_comma_cannot_be_pushed(api: Api, name: Name, comma: str) -> None:
    (await api.push(topic=comma, id=(job_id := name("id")))).refused()
    assert (await api.get(job_id)).ok() is None


@in_one_setup
@pytest.mark.parametrize("count", [0, -1, 1001, 2**63, 1.5, "1", True, [], {}], ids=repr)
async def test_a_bad_count_takes_nothing(api: Api, topic: str, name: Name, count: object) -> None:
    (await api.push(topic=topic, id=(job_id := name("id")))).ok()
    (await api.pop(topic, count=count)).refused()
    assert (await api.pop(topic)).ok()["id"] == job_id


@in_one_setup
@pytest.mark.parametrize(
    "timeout",
    [-1, -0.001, QUEUE_BLOCK_TIMEOUT_S + 1, 1e300, math.nan, math.inf, -math.inf, "1", True, []],
    ids=repr,
)
async def test_a_bad_timeout_takes_nothing(api: Api, topic: str, name: Name, timeout: Any) -> None:
    (await api.push(topic=topic, id=(job_id := name("id")))).ok()
    (await api.pop(topic, timeout=timeout)).refused()
    assert (await api.pop(topic)).ok()["id"] == job_id


async def test_the_longest_timeout_works(api: Api, topic: str, name: Name) -> None:
    (await api.push(topic=topic, id=(job_id := name("id")))).ok()
    assert (await api.pop(topic, timeout=QUEUE_BLOCK_TIMEOUT_S)).ok()["id"] == job_id


@in_one_setup
@pytest.mark.parametrize(
    "fields",
    [
        {"delay": 0},
        {"delay": 0.0},
        {"delay": 2**31},
        {"delay": 86_400.5},
        {"delay": 1e3},
        {"ttr": 1},
        {"ttr": 86_400},
        {"due": 0},
        {"due": 1.5},
        {"delay": None},
        {"due": None},
        {"body": None},
        {"delay": None, "due": 1},
    ],
    ids=repr,
)
async def test_the_edges_of_a_job_work(
    api: Api, topic: str, name: Name, fields: dict[str, object]
) -> None:
    job_id = name("id")
    (await api.push(**{"topic": topic, "id": job_id} | fields)).ok()
    job = (await api.get(job_id)).ok()
    assert (job["ttr"], job["body"]) == (fields.get("ttr", 60), "")
    if fields.get("delay"):
        assert job["delay"] == pytest.approx(time.time() + float(str(fields["delay"])), abs=5)


@in_one_setup
@pytest.mark.parametrize(
    "fields",
    [
        {"delay": -1},
        {"delay": -0.001},
        {"delay": 2**31 + 1},
        {"delay": 2**63},
        {"delay": math.nan},
        {"delay": math.inf},
        {"delay": "1"},
        {"delay": True},
        {"delay": False},
        {"delay": [1]},
        {"due": -1},
        {"due": 1e300},
        {"due": math.nan},
        {"due": "1"},
        {"due": True},
        {"due": 1, "delay": 1},
        {"ttr": 0},
        {"ttr": -1},
        {"ttr": 0.5},
        {"ttr": 86_401},
        {"ttr": "60"},
        {"ttr": True},
        {"ttr": None},
        {"id": 1},
        {"id": True},
        {"id": None},
        {"id": ["a"]},
        {"id": " "},
        {"topic": 1},
        {"topic": None},
        {"topic": ["a"]},
        {"topic": "\u3000"},
        {"body": 1},
        {"body": {"a": 1}},
        {"body": ["a"]},
        {"body": False},
    ],
    ids=repr,
)
async def test_a_bad_field_is_refused_and_nothing_is_kept(
    api: Api, topic: str, name: Name, fields: dict[str, object]
) -> None:
    job_id = name("id")
    message = (await api.push(**{"topic": topic, "id": job_id, "delay": 0} | fields)).refused()
    assert any(field in message for field in fields)
    assert (await api.get(job_id)).ok() is None


@in_one_setup
@pytest.mark.parametrize(
    ("path", "asked", "named"),
    [
        ("/pause", {"topic": "t", "seconds": 0}, "seconds"),
        ("/pause", {"topic": "t", "seconds": 0.0001}, "seconds"),
        ("/push", {"topic": "t", "id": "a", "ttr": 60, "expire": 0}, "expire"),
        ("/push", {"topic": "t", "id": "a", "ttr": 60, "expire": 0.0004}, "expire"),
        ("/push", {"topic": "t", "id": "a", "ttr": 60, "if_exists": ""}, "if_exists"),
        ("/push", {"topic": "t", "id": "a", "ttr": 60, "retry": {"max": 0}}, "max"),
        ("/push", {"topic": "t", "id": "a", "ttr": 0}, "ttr"),
        ("/pop", {"topic": "t", "count": 0}, "count"),
        ("/list", {"topic": "t", "limit": 0}, "limit"),
        ("/list", {"topic": "t", "state": ""}, "state"),
        ("/limit", {"topic": "t", "concurrency": 0}, "concurrency"),
        ("/limit", {"topic": "t", "rate": 0}, "rate"),
        ("/cancel", {"tag": "t", "topic": ""}, "topic"),
        ("/purge", {"topic": "t", "state": ""}, "state"),
        ("/subscribe", {"name": "n", "topic": "t", "url": "http://a.b", "secret": ""}, "secret"),
        ("/subscribe", {"name": "n", "topic": "t", "url": "http://a.b", "timeout": 0}, "timeout"),
        ("/schedule", {"name": "n", "topic": "t", "every": 0}, "every"),
        ("/schedule", {"name": "n", "topic": "t", "every": 60, "tz": ""}, "tz"),
        ("/schedule", {"name": "n", "topic": "t", "every": 60, "catch_up": ""}, "catch_up"),
    ],
)
async def test_nothing_and_zero_are_values_and_not_the_default(
    api: Api, path: str, asked: dict[str, Any], named: str
) -> None:
    assert named in (await api.call(path, asked)).refused(INVALID)
