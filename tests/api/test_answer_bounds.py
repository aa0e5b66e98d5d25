"""The largest requests and answers: how large they get, and how much memory the server needs for them."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Any, Final

import pytest

from bench.processes import Memory
from delayqueue.client import Client
from delayqueue.net.unread import MOST_BYTES
from tests.api_client import INVALID, OK, TOO_LARGE, Api, open_api
from tests.processes import LOOPBACK, Processes, QueueServer, StoreServer

MIB: Final = 1 << 20
MOST_IN_ANSWER: Final = 4 * MIB
MOST_GROWTH: Final = 64 * MIB
HALF_MIB: Final = "x" * (MIB // 2)
IDS: Final = [f"large-{n:02}" for n in range(20)]
REQUEST_BYTES: Final = 8 * MIB
UNREAD: Final = 70  # answers of 3 to 4 MiB
DELAYED: Final = {"topic": "delayed", "tags": ["large"], "delay": 3600}


@pytest.fixture(scope="module", params=[1, 4], ids=["1 bucket", "4 buckets"])
def large_server(
    request: pytest.FixtureRequest, processes: Processes, redis_server: StoreServer
) -> QueueServer:
    return processes.server(redis_server, bucket_size=request.param)


@pytest.fixture
async def api(large_server: QueueServer) -> AsyncIterator[Api]:
    """A client of it, with 20 MiB of delayed jobs in one topic, and as many ready ones in another."""
    async with open_api(large_server.url) as client:
        counts = {each["topic"]: each for each in (await client.call("/topics", {})).ok()}
        for state, job in (("ready", {"topic": "ready"}), ("delayed", DELAYED)):
            if counts.get(state, {}).get(state) != len(IDS):  # else no test has taken any
                await fill(client, job)
        yield client


async def fill(client: Api, job: dict[str, Any]) -> None:
    """Push one such job of 1 MiB for each of the ids."""
    jobs = [
        job | {"id": f"{job['topic']}-{job_id}", "body": HALF_MIB * 2, "ttr": 60} for job_id in IDS
    ]
    for at in range(0, len(jobs), 4):
        await client.push_all(jobs[at : at + 4])


def bodies(data: Any) -> int:
    """The bytes of the bodies in an answer."""
    jobs = data["jobs"] if isinstance(data, dict) else data
    return sum(len(job.get("body", "")) for job in jobs)


@pytest.mark.parametrize(
    ("path", "request_"),
    [
        ("/get", {"ids": [f"delayed-{IDS[0]}"] * 1000}),
        ("/get", {"ids": [f"delayed-{job_id}" for job_id in IDS] * 50}),
        ("/list", {"topic": "delayed", "limit": 1000}),
        ("/list", {"topic": "ready", "limit": 1000}),
        ("/list", {"tag": "large", "limit": 1000}),
        ("/pop", {"topic": "ready", "count": 1000, "timeout": 10}),
        ("/take", {"topic": "ready", "start": 0, "count": 1000}),
        ("/take", {"topic": "delayed", "start": 0, "count": 1000}),
    ],
    ids=[
        *("get the same", "get all", "list delayed", "list ready", "list tag"),
        *("pop", "take ready", "take delayed"),
    ],
)
async def test_an_answer_holds_4_mib_of_jobs(
    api: Api, large_server: QueueServer, path: str, request_: Any
) -> None:
    memory = Memory(large_server.pid)
    data = (await api.call(path, request_)).ok()
    assert MIB <= bodies(data) <= MOST_IN_ANSWER
    assert memory.growth() < MOST_GROWTH


async def test_get_names_the_ids_that_it_left_out(api: Api, large_server: QueueServer) -> None:
    ids = [f"delayed-{job_id}" for job_id in IDS]
    data = (await api.call("/get", {"ids": ["unknown", *ids, "unknown"]})).ok()
    assert [job and job["id"] for job in data] == [None, *ids, "unknown"]
    assert data[4:] == [{"id": job_id, "code": TOO_LARGE} for job_id in [*ids[3:], "unknown"]]
    with Client(large_server.url) as client:
        found = client.get_many(["unknown", *ids, ids[0]])
    assert [job and job.id for job in found] == [None, *ids, ids[0]]


async def test_answers_that_nobody_reads_leave_no_memory_when_their_clients_are_cut_off(
    api: Api, large_server: QueueServer
) -> None:
    memory = Memory(large_server.pid)
    asked = b'{"ids": ["%b"]}' % b'", "'.join(b"delayed-%b" % each.encode() for each in IDS)
    head = b"POST /get HTTP/1.1\r\nHost: bounds\r\nContent-Length: %d\r\n\r\n" % len(asked)
    loop = asyncio.get_running_loop()
    with ExitStack() as stack:
        for _ in range(UNREAD):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # it takes little itself
            client.setblocking(False)
            await loop.sock_connect(client, (LOOPBACK, large_server.port))
            await loop.sock_sendall(client, head + asked)
            await loop.sock_recv(client, 1)
    assert memory.growth() < 2 * MOST_BYTES < UNREAD * 3 * MIB


FILLERS: Final = {
    "numbers": b"1,",
    "arrays": b"[],",
    "objects": b"{},",
    "filled objects": b'{"a":1},',
    "deep arrays": b"[",
    "pairs": b'"a":1,',
    "texts": b'"a",',
    "escapes": b"\\u00e9",
}


# each filler for both kinds of requests, a list and an object, and one for each other path; --every-store tries all
LARGEST: Final = [
    pytest.param(
        path,
        filler,
        id=f"{filler}-{path}",
        marks=() if path in {"/push", "/get"} or filler == "filled objects" else pytest.mark.seldom,
    )
    for path in ("/push", "/get", "/finish", "/topics", "/pop", "/subscribe")
    for filler in FILLERS
]


@pytest.mark.parametrize(("path", "filler"), LARGEST)
async def test_the_largest_request_takes_little_memory(
    ordered_api: Api, ordered_server: QueueServer, path: str, filler: str
) -> None:
    begin, end = {
        "pairs": (b"{", b'"b":1}'),
        "escapes": (b'{"topic":"', b'"}'),
        "deep arrays": (b"", b""),
    }.get(filler, (b'{"ids":[', b"1]}") if path != "/push" else (b"[", b"1]"))
    part = FILLERS[filler]
    content = begin + part * ((REQUEST_BYTES - 100) // len(part)) + end
    memory = Memory(ordered_server.pid)
    assert (await ordered_api.request("POST", path, content)).code in {OK, INVALID, TOO_LARGE}
    assert memory.growth() < MOST_GROWTH
