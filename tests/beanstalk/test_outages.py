"""The store fails, the server stops, a client vanishes: every client gets an answer, and no job is lost."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from typing import Any, Final
from unittest.mock import Mock

import pytest

from delayqueue.beanstalk.connection import Connection
from delayqueue.beanstalk.server import BeanstalkServer
from delayqueue.beanstalk.tube_access import TubeAccess
from delayqueue.config.config import Config
from delayqueue.tasks import cancel_all
from tests.api_client import open_api
from tests.processes import LOOPBACK, Processes, StoreServer, free_port
from tests.shared_limits import limits
from tests.waiting import until, until_async

from .conftest import Served, accepting, at_home, opened
from .test_both_protocols import OrdersAreIds
from .wire import Wire

EXIT_S: Final = 25.0  # it takes up to 8 s
HEALTHZ: Final = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
ANSWER_S: Final = 20.0  # it takes 5 s; the store would never answer


@pytest.fixture
def ending(processes: Processes, redis_server: StoreServer) -> Iterator[Served]:
    """A server that is told to stop."""
    served = opened(processes, redis_server)
    yield served
    served.server.close()


async def test_a_server_that_stops_answers_and_gives_back(
    processes: Processes, redis_server: StoreServer, tube: str
) -> None:
    database = redis_server.new_database()
    server, port = opened(processes, redis_server, redis__db=database)
    async with (
        Wire.opened(port) as holds,
        Wire.opened(port) as idle,
        Wire.opened(port) as patient,
        Wire.opened(port) as waits,
    ):
        for wire in (holds, idle, patient, waits):
            await at_home(wire, tube)
        numbers = [await holds.put(b"x", 5, 0, 1000) for _ in range(3)]
        for _ in range(2):
            await holds.reserve()
        for wire, command in ((waits, b"reserve\r\n"), (patient, b"reserve-with-timeout 100\r\n")):
            await wire.ask(b"ignore " + tube.encode())
            await wire.ask(b"watch nothing")
            await wire.ask(b"ignore " + tube.encode())
            await wire.send(command)
        await until_async(lambda: _waiting(idle, 2))
        server.send(signal.SIGTERM)
        assert await patient.answer() == b"TIMED_OUT\r\n"
        assert [await wire.rest() for wire in (holds, idle, patient, waits)] == [b""] * 4
    await until(lambda: server.exit_status() is not None, within_s=EXIT_S)
    assert server.exit_status() == 0
    log = server.logged()
    assert "Traceback" not in log
    again = processes.server(redis_server, redis__db=database)
    async with open_api(again.url) as api:
        jobs = [(await api.pop(tube)).ok() for _ in numbers]
    assert [job["attempt"] for job in jobs] == [1, 1, 1]
    again.close()


async def _waiting(wire: Wire, wanted: int) -> bool:
    return (await wire.stats(b"stats"))["current-waiting"] == str(wanted)


async def test_puts_under_way_are_answered_by_a_server_that_stops(
    ending: Served, tube: str
) -> None:
    """Or the connection is closed."""
    server, port = ending
    async with Wire.opened(port) as wire:
        await at_home(wire, tube)

        answers: list[bytes] = []

        async def put() -> None:
            with suppress(ConnectionError):
                while not answers or answers[-1].startswith(b"INSERTED"):
                    answers.append(await wire.ask(b"put 5 0 60 1\r\nx"))
                assert answers[-1] == b""

        putting = asyncio.create_task(put())
        await until(lambda: len(answers) > 9)
        server.send(signal.SIGTERM)
        await putting
    await until(lambda: server.exit_status() is not None, within_s=EXIT_S)
    assert "Traceback" not in server.logged()


async def test_a_server_that_stops_carries_out_what_was_on_its_way_to_either_port() -> None:
    """Its sender has found the connection open, and may not send it again. New clients go elsewhere."""
    queue: Any = OrdersAreIds(0)
    server = BeanstalkServer(queue, TubeAccess.of(Config()))
    ports = free_port(), free_port()
    async with AsyncExitStack() as serving:
        await serving.enter_async_context(accepting(server, *ports))
        async with Wire.opened(ports[0]) as http, Wire.opened(ports[1]) as wire:
            await http.send(HEALTHZ)
            assert (await http.answer()).startswith(b"HTTP/1.1 404")  # the front has no endpoints
            await wire.ask(b"list-tube-used")
            closing = asyncio.create_task(serving.aclose())
            await asyncio.sleep(0)
            for port in ports:
                with pytest.raises(ConnectionRefusedError):
                    await Wire.open(port)
            await wire.put(b"late")
            await http.send(HEALTHZ)
            assert b"Connection: close" in await http.rest()
            assert await wire.rest() == b""
            await closing


async def test_a_server_that_stops_waits_for_clients_that_are_answered() -> None:
    """Nor has one been answered that has yet to read."""
    queue: Any = OrdersAreIds(0)
    server = BeanstalkServer(queue, TubeAccess.of(Config()))
    transport = Mock(get_extra_info={"peername": (LOOPBACK, 1)}.get)
    connection = Connection(server, limits())
    connection.connection_made(transport)
    connection.pause_writing()
    assert not connection.close_if_idle()
    connection.resume_writing()
    connection.data_received(b"put 0 0 60 1\r\na\r\n")
    assert not connection.close_if_idle()
    transport.close.assert_not_called()
    await cancel_all(server.calls)


@pytest.fixture
def mortal_store(processes: Processes) -> Iterator[StoreServer]:
    """A Redis that the test may kill; it keeps its data."""
    store = processes.redis("--appendonly", "yes", "--appendfsync", "always")
    yield store
    store.close()


@pytest.mark.parametrize("end", ["kill", "freeze"])
async def test_without_a_store_every_command_has_an_answer(
    processes: Processes, mortal_store: StoreServer, tube: str, end: str
) -> None:
    server, port = opened(processes, mortal_store)
    async with AsyncExitStack() as stack:
        wires = [await stack.enter_async_context(Wire.opened(port)) for _ in range(20)]
        for number, wire in enumerate(wires):
            await at_home(wire, f"{tube}-{number}")
        waits, *wires = wires
        held = [await wire.put(b"x", 5, 0, 1000) for wire in wires[:4]]
        assert [(await wire.reserve())[0] for wire in wires[:4]] == held
        await waits.send(b"reserve-with-timeout 60\r\n")
        await until_async(lambda: _waiting(wires[0], 1))
        getattr(mortal_store, end)()
        commands = [
            *(b"delete %d" % held[0], b"release %d 5 0" % held[1], b"bury %d 5" % held[2]),
            *(b"touch %d" % held[3], b"put 5 0 60 1\r\nx", b"reserve-with-timeout 0", b"peek 1"),
            *(b"peek-ready", b"kick 5", b"kick-job 1", b"stats", b"stats-job 1", b"list-tubes"),
            *(b"delete 999", b"reserve-job 999", b"pause-tube %b-16 0" % tube.encode()),
        ]
        asking = [_ask(wire, command) for wire, command in zip(wires, commands, strict=False)]
        assert {*await asyncio.gather(*asking)} == {b"OUT_OF_MEMORY\r\n"}
        for command in (b"use a", b"watch a", b"ignore a", b"list-tube-used"):
            assert (await wires[-1].ask(command)).startswith((b"USING", b"WATCHING"))
        mortal_store.start() if end == "kill" else mortal_store.thaw()
        await until_async(lambda: _puts(wires[-1]))
        # a held job is still held, or its end was done without an answer
        for wire, number in zip(wires, held, strict=False):
            assert await wire.ask(b"delete %d" % number) in {b"DELETED\r\n", b"NOT_FOUND\r\n"}
        await wires[0].ask(b"use %b-0" % tube.encode())
        await wires[0].put(b"y")
        assert (await waits.answer(30)).startswith(b"RESERVED")
    assert "Traceback" not in server.logged()
    server.close()


async def _ask(wire: Wire, command: bytes) -> bytes:
    await wire.send(command + b"\r\n")
    return await wire.answer(ANSWER_S)


async def _puts(wire: Wire) -> bool:
    return (await wire.ask(b"put 5 0 60 1\r\nx")).startswith(b"INSERTED")


async def test_answers_to_what_was_sent_come_though_the_client_ends_its_side(
    served: Served, tube: str
) -> None:
    async with Wire.opened(served.port) as wire:
        await at_home(wire, tube)
        await wire.send(b"put 5 0 60 1\r\nx\r\n" * 50 + b"reserve\r\n" * 51 + b"list-tube-used\r\n")
        rest = await wire.end()
    words = [line.split()[0] for line in rest.splitlines()]
    assert [words.count(word) for word in (b"INSERTED", b"RESERVED", b"TIMED_OUT", b"USING")] == [
        50,
        50,
        1,
        1,
    ]
