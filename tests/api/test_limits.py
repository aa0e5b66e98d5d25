"""The edges of every number and length: the last value that works, and the first that is refused."""

import asyncio
import json
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
    head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)).decode()
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


async def test_a_pop_of_64_topics_works(api: Api, topic: str, name: Name) -> None:
    (await api.push(topic=topic, id=(job_id := name("id")))).ok()
    topics = [*(f"{topic}/{n}" for n in range(63)), topic]
    assert (await api.pop(",".join(topics))).ok()["id"] == job_id


async def test_the_longest_timeout_works(api: Api, topic: str, name: Name) -> None:
    (await api.push(topic=topic, id=(job_id := name("id")))).ok()
    assert (await api.pop(topic, timeout=QUEUE_BLOCK_TIMEOUT_S)).ok()["id"] == job_id
