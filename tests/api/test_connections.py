"""`max_connections`: who is refused, who is served beyond it, and what the operator is told."""

import asyncio
import json
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from delayqueue.net.connection_limit import (
    FOR_OPERATORS,
    FOR_THIS_MACHINE,
    LEAVING,
    SPARED_S,
    UNDECIDED,
)
from tests.api.test_access import own_address
from tests.api.test_shared_limits import Client, clients, post, push
from tests.api_client import TOO_MANY, open_api
from tests.beanstalk.conftest import Served, opened
from tests.certificates import make
from tests.figures import samples_of
from tests.processes import (
    LOOPBACK,
    Processes,
    QueueServer,
    StoreServer,
    free_port,
    run_program,
)
from tests.waiting import until, until_async

__all__ = ["own_address"]

MOST: Final = 5


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


@pytest.fixture
def listening(processes: Processes, redis_server: StoreServer) -> Served:
    """A server whose two ports are open to other machines."""
    return opened(
        processes,
        redis_server,
        bind_address=f"0.0.0.0:{free_port()}",
        protected_mode="no",
        max_connections=MOST,
        language="en",
    )


@asynccontextmanager
async def full(server: QueueServer, address: str, most: int = MOST) -> AsyncIterator[None]:
    """Take all places, as clients on other machines."""
    async with clients(server.port, most, address) as polls:
        for each in polls:
            await each.send(post("/pop", b'{"topic":"nothing","timeout":60}'))
        await until_async(lambda: waits(server, most))
        yield


async def metrics(server: QueueServer) -> Any:
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session,
        session.get(f"{server.url}/metrics") as response,
    ):
        assert response.status == 200
        return samples_of(await response.text())


async def waits(server: QueueServer, polls: int) -> bool:
    return bool((await metrics(server)).sum("delayqueue_waiting_polls") == polls)


async def ask(
    server: QueueServer, request: bytes, address: str, tls: ssl.SSLContext | None = None
) -> tuple[int, bytes]:
    """Status and body of the answer to the first request of a new connection, which is closed behind it."""
    async with clients(server.port, 1, address, tls) as (client,):
        await client.send(request)
        await until(lambda: client.has_ended)
        head, _, body = client.got.partition(b"\r\n\r\n")
        assert b"\r\nconnection: close" in head.lower()
        return int(head.split()[1]), body


async def test_who_watches_over_a_full_server_is_answered(
    listening: Served, own_address: str
) -> None:
    read = ("/healthz", "/readyz", "/metrics", "/admin", "/admin/js/api.js", "/stats")
    asked = ("/topics", "/history", "/workers")  # by the page
    async with full(listening.server, own_address):
        for request in (*map(get, read), *(post(path, b"{}") for path in asked)):
            status, _ = await ask(listening.server, request, own_address)
            assert status == 200, request


async def test_other_clients_are_told_why_they_are_refused_at_both_ports(
    listening: Served, own_address: str
) -> None:
    server = listening.server
    async with full(server, own_address):
        for request in (
            push(100),
            post("/pop", b'{"topic":"a"}'),
            get("/nothing"),
            b"hello\r\n\r\n",
        ):
            status, body = await ask(server, request, own_address)
            answer = json.loads(body)
            assert (status, answer["code"]) == (429, TOO_MANY)
            assert "max_connections" in answer["message"]
        async with clients(listening.port, 1) as (client,):
            await client.send(b"list-tube-used\r\n")
            await until(lambda: client.got == b"USING default\r\n")  # from this machine
        refused = (await metrics(server)).sum("delayqueue_refused_total", limit="connections")
        assert refused == 4
        # the first one at once, and the rest in a minute: a storm does not fill the disk
        await until(lambda: "refused 1 connections: a process has at most 5" in server.logged())
        assert server.logged().count("refused ") == 1
    await until_async(lambda: lets_in(server, own_address))


async def lets_in(server: QueueServer, address: str) -> bool:
    async with clients(server.port, 1, address) as (client,):
        await client.send(push(100))
        await until(lambda: bool(client.got))
        return client.answer()[0] == 200


async def test_the_connection_that_is_idle_for_longest_makes_room(
    listening: Served, own_address: str
) -> None:
    """None that was used in the last second is closed, and none with a request or a part of one."""
    server = listening.server
    async with clients(server.port, MOST, own_address) as before, AsyncExitStack() as stack:
        poll, slow, unused, first, last = before
        await poll.send(post("/pop", b'{"topic":"nothing","timeout":60}'))
        await slow.send(push(100)[:-1])
        for each in (first, last):
            used_s = time.monotonic()
            await each.send(push(100))
            await until(lambda: bool(each.got))  # noqa: B023  # called before the next

        async def is_let_in() -> bool:
            (client,) = await stack.enter_async_context(clients(server.port, 1, own_address))
            await client.send(push(100))
            await until(lambda: bool(client.got))
            return client.answer()[0] == 200

        closed = unused, first, last
        for count in range(1, len(closed) + 1):
            await until_async(is_let_in)
            await until(lambda: all(each.has_ended for each in closed[:count]))  # noqa: B023
            assert not any(each.has_ended for each in closed[count:])
        assert time.monotonic() - used_s > 0.99 * SPARED_S
        await slow.send(b" " + post("/push", b'{"topic":"nothing","id":"1","ttr":9}'))
        await until(lambda: slow.got.count(b'"code":0') == 2 and b'"code":0' in poll.got)
    closings = (await metrics(server)).sum("delayqueue_refused_total", limit="idle")
    assert closings >= len(closed)  # the scrape is a new connection, too
    told = "closed 1 idle connections, to accept others: a process has at most 5"
    await until(lambda: told in server.logged())


async def test_only_the_first_request_on_such_a_connection_is_answered(
    listening: Served, own_address: str
) -> None:
    async with full(listening.server, own_address):
        status, body = await ask(listening.server, get("/healthz") + push(100), own_address)
        assert (status, body.count(b'"code"')) == (200, 1)
    async with open_api(listening.server.url) as api:
        assert (await api.call("/topics", {})).ok() == []


async def test_clients_on_this_machine_have_places_of_their_own(
    listening: Served, own_address: str
) -> None:
    server = listening.server
    async with full(server, own_address):
        settings = {"bind_address": f"0.0.0.0:{server.port}"}
        assert run_program("healthy", settings=settings).returncode == 0
        async with clients(server.port, FOR_THIS_MACHINE) as own:
            for each in own:
                await each.send(push(100))
            await until(lambda: all(each.got for each in own))
            assert {each.answer()[0] for each in own} == {200}
            assert (await ask(server, push(100), LOOPBACK))[0] == 429
            # and they leave those of the others alone
            assert (await ask(server, get("/healthz"), own_address))[0] == 200


async def test_a_storm_of_clients_that_say_nothing_does_not_keep_the_operator_out(
    listening: Served, own_address: str
) -> None:
    server = listening.server
    async with full(server, own_address), clients(server.port, 300, own_address) as silent:
        assert (await ask(server, get("/healthz"), own_address))[0] == 200
        await until(lambda: all(each.has_ended for each in silent))  # after two seconds at most
        open_files = (await metrics(server)).one("process_open_fds")
    assert open_files < 100 + UNDECIDED + LEAVING


async def test_requests_for_the_operator_have_a_limit_too(
    listening: Served, own_address: str
) -> None:
    """Half of a request is no request: who is slow has two seconds, and its place is bounded."""
    server = listening.server
    slow = post("/stats", b"{}")[:-1]  # its head is here, and its body is not
    async with full(server, own_address), AsyncExitStack() as stack:
        served = []
        for _ in range(FOR_THIS_MACHINE + FOR_OPERATORS):  # each has two seconds
            [one] = await stack.enter_async_context(clients(server.port, 1, own_address))
            await one.send(slow)
            served.append(one)

        async def are_counted() -> bool:
            status, _ = await ask(server, get("/healthz"), own_address)
            return status == 429

        await until_async(are_counted)
        for each in served:
            await each.send(b"}")
        await until(lambda: all(each.got for each in served))
        assert {each.answer()[0] for each in served} == {200}


async def test_beyond_the_limit_a_tls_connection_is_served_alike(
    processes: Processes, redis_server: StoreServer, own_address: str, tmp_path: Path
) -> None:
    own = make(tmp_path, "server")
    context = own.context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    server = processes.server(
        redis_server,
        context,
        tls_cert=own.cert,
        tls_key=own.key,
        bind_address=f"0.0.0.0:{free_port()}",
        protected_mode="no",
        max_connections=1,
    )
    # there is room for each until the first handshake ends
    accepted = [socket.create_connection((own_address, server.port)) for _ in range(3)]
    async with AsyncExitStack() as stack:
        polls = []
        for each in accepted:
            streams = await asyncio.open_connection(sock=each, ssl=context, server_hostname="x")
            polls.append(await stack.enter_async_context(aclosing(Client(*streams))))
            await polls[-1].send(post("/pop", b'{"topic":"nothing","timeout":60}'))
        await until(lambda: [each.has_ended for each in polls] == [False, True, True])
        for request in (get("/healthz"), post("/topics", b"{}")):
            assert (await ask(server, request, own_address, context))[0] == 200


def limited(processes: Processes, store: StoreServer, files: str, **more: object) -> QueueServer:
    """A server that may open so many files: soft limit, and hard one."""
    settings = store.settings(store.new_database()) | more
    server = QueueServer("server", processes.home("server"), settings)
    server.wrap("prlimit", f"--nofile={files}")
    return processes.started(server)


async def test_a_server_that_may_open_few_files_says_so_and_refuses_what_it_cannot_hold(
    processes: Processes, redis_server: StoreServer, own_address: str
) -> None:
    server = limited(
        processes,
        redis_server,
        "256:256",
        bind_address=f"0.0.0.0:{free_port()}",
        protected_mode="no",
        language="en",
    )
    needed = "max_connections = 25000 needs 25160 open files, and the limit is 256"
    await until(lambda: needed in server.logged())  # written behind the first answer
    async with full(server, own_address, 96):
        for _ in range(10):  # more at once would be cut off, and those that read late see no answer
            async with clients(server.port, LEAVING // 4, own_address) as more:
                for each in more:
                    await each.send(post("/pop", b'{"topic":"nothing","timeout":60}'))
                await until(lambda: all(b"HTTP/1.1 429" in each.got for each in more))
        assert server.probe("/healthz") == 200
    await until(lambda: "refused 1 connections: a process has at most 96" in server.logged())
