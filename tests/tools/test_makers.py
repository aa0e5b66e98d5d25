"""The makers of faults do what their names say: a scenario whose fault never happened proves nothing."""

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path
from socket import socket
from typing import TypeVar

import pytest

from faults.bed import MIB, Bed, CannotRun, restart
from faults.clock import Clock
from faults.matrix import CHINESE, DOCUMENT, cells_of, write, write_chinese
from faults.network import DIRECTIONS, Network
from faults.proxy import Proxy
from faults.row import Outcome
from faults.rows import ROWS
from faults.scenarios.inputs import bomb
from tests.processes import LOOPBACK, REPOSITORY, Host, Processes
from tests.waiting import until, until_async

Made = TypeVar("Made")
Connect = Callable[[], Awaitable["Client"]]

SILENCE_S = 0.2
ANSWER_S = 30.0
FIGURE = r"\d+(?:[,.]\d+)*"


def made(maker: Callable[[], Made]) -> Made:
    """What it makes; skips the test if that cannot run here."""
    try:
        return maker()
    except CannotRun as reason:
        pytest.skip(str(reason))


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    """A proxy before an echo server."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while content := await reader.read(100):
                writer.write(content)
        writer.close()

    server = await asyncio.start_server(echo, LOOPBACK, 0)
    async with Proxy(server.sockets[0].getsockname()[1]) as it:
        yield it
    server.close()


class Client:
    """A connection through the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, within_s: float = ANSWER_S) -> bytes:
        """The answer; b"" if the connection ends. Raises TimeoutError if nothing comes."""
        self._writer.write(b"ask")
        async with asyncio.timeout(within_s):
            try:
                return await self._reader.read(100)
            except ConnectionResetError:
                return b""

    def close(self) -> None:
        self._writer.transport.abort()


@pytest.fixture
async def connect(proxy: Proxy) -> AsyncIterator[Connect]:
    """Opens connections."""
    clients = []

    async def open_one() -> Client:
        clients.append(Client(*await asyncio.open_connection(LOOPBACK, proxy.port)))
        return clients[-1]

    yield open_one
    for client in clients:
        client.close()
    await asyncio.sleep(SILENCE_S)  # until the proxy has noticed


async def test_a_proxy_passes_on_what_it_gets(connect: Connect) -> None:
    assert await (await connect()).ask() == b"ask"


async def test_a_cut_ends_a_connection_and_new_ones_work(proxy: Proxy, connect: Connect) -> None:
    client = await connect()
    await client.ask()
    proxy.cut()
    assert await client.ask() == b""
    assert await (await connect()).ask() == b"ask"


async def test_a_half_open_connection_is_silent_and_new_ones_work(
    proxy: Proxy, connect: Connect
) -> None:
    client = await connect()
    await client.ask()
    proxy.half_open()
    with pytest.raises(TimeoutError):
        await client.ask(SILENCE_S)
    assert await (await connect()).ask() == b"ask"


async def test_a_dropped_answer_ends_the_connection(proxy: Proxy, connect: Connect) -> None:
    client = await connect()
    await client.ask()
    proxy.drop_next_answers()
    assert await client.ask() == b""


def test_a_busy_thread_leaves_others_their_turn_under_a_wrong_clock_too(tmp_path: Path) -> None:
    """With libfaketime 0.9.10, each time.sleep() of a process with its own monotonic clock fails."""
    clock = made(lambda: Clock(tmp_path / "clock"))
    code = "from delayqueue.delivery.side_loop import Turns; Turns().leave()"
    subprocess.run([*clock.wrapper, sys.executable, "-c", code], cwd=REPOSITORY, check=True)


async def test_a_delayed_answer_comes_late(proxy: Proxy, connect: Connect) -> None:
    client = await connect()
    proxy.delay_s = 2 * SILENCE_S
    began_s = time.monotonic()
    assert await client.ask() == b"ask"
    assert time.monotonic() - began_s >= proxy.delay_s


def test_a_bomb_is_a_thousand_times_smaller_than_what_is_in_it() -> None:
    assert len(bomb(64)) * 900 < 64 * MIB


def test_the_port_of_a_process_that_is_down_is_nobody_elses(tmp_path: Path) -> None:
    with closing(Bed(tmp_path / "bed", seed=1)) as bed:
        store = bed.store()
        store.kill()
        with socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((LOOPBACK, store.port))
        store.start()


async def test_what_a_scenario_started_ends_with_it(tmp_path: Path) -> None:
    bed = Bed(tmp_path / "bed", seed=1)
    store = bed.store()
    bed.close()
    assert store.exit_status() is not None


def test_results_are_put_into_the_lines_of_their_rows_and_the_others_stay(tmp_path: Path) -> None:
    page = tmp_path / "faults.md"
    page.write_text(
        "".join(f"| {n} | it breaks | it holds | passed | old |  |  |\n" for n in (1, 2, 3))
    )
    passed = Outcome(ROWS[0], seed=7, took_s=1.0, figures={"jobs": 3})
    failed = Outcome(ROWS[1], seed=8, took_s=1.0, figures={}, failure="AssertionError: a|b\nmore")
    write(page, [passed, failed], "today abc")
    assert page.read_text().splitlines() == [
        "| 1 | it breaks | it holds | passed | jobs 3 | 7 | today abc |",
        "| 2 | it breaks | it holds | **FAILED** | AssertionError: a\\|b | 8 | today abc |",
        "| 3 | it breaks | it holds | passed | old |  |  |",
    ]
    write(page, [Outcome(ROWS[2], 1, 1.0, {}, not_run="no nginx")], "today")
    assert cells_of(page)[3][3:] == ["**not run**", "no nginx", "", ""]


def test_every_row_has_a_line_on_both_pages_with_the_same_figures_and_results(
    tmp_path: Path,
) -> None:
    """`python -m faults --rows 18` writes the results of the English page into the Chinese one."""
    english, chinese = cells_of(DOCUMENT), cells_of(CHINESE)
    assert [*english] == [*chinese] == [row.number for row in ROWS]
    for number, cells in english.items():
        there = (
            set(re.findall(FIGURE, " ".join(words[1:3]))) for words in (cells, chinese[number])
        )
        assert len({frozenset(figures) for figures in there}) == 1, number
    path = tmp_path / CHINESE.name
    path.write_bytes(CHINESE.read_bytes())
    write_chinese(path, DOCUMENT)
    assert path.read_text("utf-8") == CHINESE.read_text("utf-8")


async def test_what_is_cut_off_is_not_reached_until_it_is_healed(processes: Processes) -> None:
    with ExitStack() as stack:
        network = made(lambda: stack.enter_context(Network.opened()))
        one, other, third = (host for host, _ in zip(network, range(3), strict=False))
        store = processes.redis("--protected-mode", "no", host=other)
        stack.callback(store.close)

        def reaches(host: Host) -> bool:
            asking = [*host.wrapper, "redis-cli", "-h", store.host, "-p", str(store.port), "ping"]
            try:
                return b"PONG" in subprocess.check_output(asking, timeout=1)
            except subprocess.TimeoutExpired:
                return False

        async def can_reach(host: Host) -> bool:
            return reaches(host)

        for direction in DIRECTIONS:
            await until_async(partial(can_reach, one))
            network.cut([one.address], [other.address], direction)
            assert not reaches(one)
            await until_async(partial(can_reach, third))
            await until(store.is_ready)
            network.heal()


async def test_a_process_is_found_ready_in_each_network_in_turn(processes: Processes) -> None:
    for _ in range(2):
        with ExitStack() as stack:
            network = made(lambda: stack.enter_context(Network.opened()))
            store = processes.redis("--protected-mode", "no", host=next(iter(network)))
            stack.callback(store.close)
            store.kill()
            await restart(store)
