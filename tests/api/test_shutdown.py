"""SIGTERM: every client gets its answer, and the process ends within seconds."""

import asyncio
import http.client
import os
import signal
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from faults.load import running
from tests.api.test_end_waits import waiting
from tests.api_client import open_api
from tests.processes import LOOPBACK, START_S, Processes, QueueServer, StoreServer
from tests.waiting import until

from .conftest import AIOHTTP, EXPRESS
from .dialogue import post

POLLS: Final = 100
EXIT_S: Final = 25.0  # it takes up to 8 s; polls and idle connections last a minute


@pytest.fixture
def ending_server(processes: Processes, redis_server: StoreServer) -> QueueServer:
    return processes.server(redis_server)


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
async def test_waiting_polls_get_an_empty_answer_and_the_server_ends(
    ending_server: QueueServer, topic: str, signal_number: signal.Signals
) -> None:
    async with open_api(ending_server.url) as api:
        polls = [asyncio.create_task(api.pop(topic, timeout=60)) for _ in range(POLLS)]
        counting = [asyncio.create_task(api.pop(topic, timeout=60, count=5)) for _ in range(POLLS)]
        await waiting(api, 2 * POLLS)
        ending_server.send(signal_number)
        assert [(await poll).ok() for poll in polls] == [None] * POLLS
        assert [(await poll).ok() for poll in counting] == [[]] * POLLS
        await until(lambda: ending_server.exit_status() is not None, within_s=EXIT_S)

    assert ending_server.exit_status() == 0


async def test_the_server_ends_though_idle_clients_keep_their_connections(
    ending_server: QueueServer,
) -> None:
    async with open_api(ending_server.url) as api:
        await asyncio.gather(*(api.get("any") for _ in range(20)))
        ending_server.send(signal.SIGTERM)
        await until(lambda: ending_server.exit_status() is not None, within_s=EXIT_S)
    assert ending_server.exit_status() == 0


@pytest.mark.parametrize("headers", [EXPRESS, AIOHTTP], ids=["express", "aiohttp"])
async def test_an_answer_that_is_being_read_is_sent_to_its_end(
    ending_server: QueueServer, topic: str, headers: Mapping[str, str]
) -> None:
    async with open_api(ending_server.url) as api:
        (await api.push(topic=topic, id=topic, body="b" * 900_000, delay=3600)).ok()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)  # the rest is the server's
        client.connect((LOOPBACK, ending_server.port))
        client.settimeout(30)
        client.sendall(post("/get", {"ids": [topic] * 8}, headers))
        length = int(client.recv(1024).lower().partition(b"content-length: ")[2].split(b"\r")[0])
        ending_server.send(signal.SIGTERM)
        await until(lambda: "stopping" in ending_server.logged())
        await asyncio.sleep(0.5)  # it would have closed the connection
        read_bytes = 1024
        while piece := client.recv(1 << 20):
            read_bytes += len(piece)
    assert read_bytes > length
    assert ending_server.wait() == 0


@pytest.mark.parametrize("headers", [EXPRESS, AIOHTTP], ids=["express", "aiohttp"])
async def test_a_push_that_is_under_way_is_answered(
    processes: Processes, topic: str, headers: Mapping[str, str]
) -> None:
    store = processes.redis()
    server = processes.server(store)
    async with open_api(server.url, headers=headers) as api:
        store.freeze()
        push = asyncio.create_task(api.push(topic=topic, id=topic))
        for _ in range(3):  # on another connection, so the push has come before
            async with api.session.get(f"{server.url}/healthz") as response:
                assert response.status == http.client.OK
        server.send(signal.SIGTERM)
        await until(lambda: "stopping" in server.logged())
        await asyncio.sleep(0.5)  # it would have closed the connection
        assert not push.done()
        store.thaw()
        (await push).ok()
        await until(lambda: server.exit_status() is not None, within_s=EXIT_S)
    assert server.exit_status() == 0


@pytest.mark.parametrize("workers", [1, 2])
async def test_further_signals_while_it_stops_change_nothing(
    processes: Processes, topic: str, workers: int
) -> None:
    store = processes.redis()
    server = processes.server(store, workers=workers)
    async with open_api(server.url) as api:
        poll = asyncio.create_task(api.pop(topic, timeout=60))
        await waiting(api, 1)
        store.freeze()  # so that the stop takes a while
        server.send(signal.SIGTERM)
        await until(lambda: "stopping" in server.logged())
        for signal_number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            server.send(signal_number)
        assert (await poll).data is None
    assert server.wait() == 0
    assert "Traceback" not in server.logged()


async def test_a_reload_until_the_last_moment_of_a_stop_is_no_failure(
    processes: Processes, redis_server: StoreServer
) -> None:
    server = processes.server(redis_server)
    server.send(signal.SIGTERM)
    while server.exit_status() is None:
        with suppress(ProcessLookupError):
            server.send(signal.SIGHUP)
        await asyncio.sleep(0.001)
    assert server.exit_status() == 0


async def test_the_server_ends_while_redis_is_frozen(processes: Processes, topic: str) -> None:
    store = processes.redis()
    server = processes.server(store)
    async with open_api(server.url) as api:
        poll = asyncio.create_task(api.pop(topic, timeout=60))
        await waiting(api, 1)
        store.freeze()
        server.send(signal.SIGTERM)
        assert (await poll).data is None
        await until(lambda: server.exit_status() is not None)


async def test_a_server_that_is_stopped_as_soon_as_it_listens_ends(
    ending_server: QueueServer,
) -> None:
    for _ in range(3):
        ending_server.stop()
        ending_server.launch()
        await until(lambda: ending_server.probe("/healthz") is not None, within_s=START_S)
    assert ending_server.stop() == 0


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_server_ends_though_its_start_hangs_at_a_file(
    processes: Processes, redis_server: StoreServer, tmp_path: Path, workers: int
) -> None:
    """As on a network that is away."""
    tokens = tmp_path / "tokens"
    os.mkfifo(tokens)
    settings = redis_server.settings(redis_server.new_database())
    settings |= {"auth_tokens_file": tokens, "workers": workers}
    server = processes.adopt(QueueServer("server", processes.home("server"), settings))
    server.launch()
    opened: list[int] = []
    await until(lambda: is_read(tokens, opened), within_s=START_S)
    assert server.stop() == 0
    assert server.logged() == ""
    os.close(*opened)


def is_read(fifo: Path, opened: list[int]) -> bool:
    """Whether somebody waits for what is written into it: nothing is, as long as it is `opened`."""
    with suppress(OSError):
        opened.append(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
    return bool(opened)


async def test_a_stop_under_load_loses_nothing(
    ending_server: QueueServer, topic: str, tmp_path: Path
) -> None:
    async with (
        open_api(ending_server.url) as api,
        running(tmp_path / "history", topic, api) as load,
    ):
        for _ in range(2):
            await load.until_acknowledged(300)
            ending_server.send(signal.SIGTERM)
            await until(lambda: ending_server.exit_status() is not None, within_s=EXIT_S)
            ending_server.start()
        verdict = await load.finish()
    verdict.check()
