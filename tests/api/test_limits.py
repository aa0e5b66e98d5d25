"""The edges of every number and length: the last value that works, and the first that is refused."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import pytest

from delayqueue.web.endpoints import ENDPOINTS
from tests.api_client import TOO_LARGE, UNAVAILABLE, Api, open_api
from tests.processes import LOOPBACK, Processes, QueueServer, StoreServer

from .conftest import in_one_setup
from .dialogue import answer

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


async def test_a_body_over_max_body_fails_alone_in_an_array(
    api: Api, topic: str, name: Name
) -> None:
    ids = [name("id") for _ in range(3)]
    jobs: list[dict[str, Any]] = [{"topic": topic, "id": i, "delay": 3600} for i in ids]
    jobs[1]["body"] = "x" * (MIB + 1)
    assert [r["code"] for r in (await api.push_all(jobs)).ok()] == [0, TOO_LARGE, 0]
    found = (await api.call("/get", {"ids": ids})).ok()
    assert [job and job["id"] for job in found] == [ids[0], None, ids[2]]


async def test_a_body_has_as_many_bytes_as_max_body_says(
    processes: Processes, redis_server: StoreServer, topic: str
) -> None:
    server = processes.server(redis_server, max_body=2000)
    async with open_api(server.url) as api:
        for letter, most in (("x", 2000), ("é", 1000)):
            (await api.push(topic=topic, id="fits", body=letter * most)).ok()
            too_long = await api.push(topic=topic, id="too long", body=letter * most + "x")
            too_long.refused(TOO_LARGE, status=413)
            assert (await api.get("too long")).ok() is None


@pytest.mark.parametrize("chunked", [False, True], ids=["with its length", "chunked"])
async def test_a_huge_request_is_refused_long_before_its_end(
    server: QueueServer, *, chunked: bool
) -> None:
    length = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % (1024 * MIB)
    piece = b"100000\r\n" + b" " * MIB + b"\r\n" if chunked else b" " * MIB
    reader, writer = await asyncio.open_connection(LOOPBACK, server.port)
    try:
        writer.write(HEAD + length + b"\r\n\r\n")
        answering = asyncio.create_task(answer(reader))
        for _ in range(MOST_SENT_MIB):
            if answering.done():
                break
            writer.write(piece)
            with suppress(ConnectionError):
                await writer.drain()
        status, told = await answering
    finally:
        writer.transport.abort()
    assert (status, told["code"], told["data"]) == (413, TOO_LARGE, None)


async def test_a_pop_of_64_topics_with_the_longest_timeout_works(
    api: Api, topic: str, name: Name
) -> None:
    (await api.push(topic=topic, id=(job_id := name("id")))).ok()
    topics = ",".join([*(f"{topic}/{n}" for n in range(63)), topic])
    assert (await api.pop(topics, timeout=QUEUE_BLOCK_TIMEOUT_S)).ok()["id"] == job_id
