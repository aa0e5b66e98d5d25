"""What the server tells systemd: that it is ready, that its timers tick, that it stops."""

import asyncio
import math
import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from delayqueue.server.process import Process
from delayqueue.server.systemd import Notifier
from tests.docs.markdown import run
from tests.docs.test_orders import needs
from tests.processes import REPOSITORY, Processes, QueueServer, StoreServer
from tests.waiting import until

UNIT: Final = REPOSITORY / "deploy/systemd/delay-queue.service"
HEARD_S: Final = 120.0
WATCHDOG_S: Final = 4.0  # a timer ticks every second


class Systemd:
    """The end of $NOTIFY_SOCKET that listens."""

    def __init__(self, name: str, end: socket.socket) -> None:
        self.name = name
        self._end = end

    def hears(self) -> str:
        """The next message. Raises TimeoutError."""
        return self._end.recv(256).decode()


@contextmanager
def listening(name: str) -> Iterator[Systemd]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
        end.bind(name.replace("@", "\0", 1) if name.startswith("@") else name)
        end.settimeout(HEARD_S)
        yield Systemd(name, end)


@pytest.fixture(params=["path", "abstract"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Systemd]:
    path = tmp_path / "notify"
    with listening(str(path) if request.param == "path" else f"@{tmp_path}") as end:
        yield end


def watched(
    processes: Processes, store: StoreServer, systemd: Systemd, **settings: object
) -> QueueServer:
    """A server as started by systemd; not awaited."""
    named = store.settings(store.new_database()) | settings
    server = processes.adopt(QueueServer("server", processes.home("server"), named))
    limit_us = round(WATCHDOG_S * 1_000_000)
    server.set_environment(NOTIFY_SOCKET=systemd.name, WATCHDOG_USEC=str(limit_us))
    server.launch()
    return server


@pytest.mark.parametrize("workers", [1, 2])
def test_it_is_told_ready_once_all_serve_then_alive_then_stopping(
    processes: Processes, redis_server: StoreServer, tmp_path: Path, workers: int
) -> None:
    with listening(str(tmp_path / "notify")) as systemd:
        server = watched(processes, redis_server, systemd, workers=workers)
        assert systemd.hears() == "READY=1"
        assert server.is_ready()
        assert [systemd.hears() for _ in range(2)] == ["WATCHDOG=1"] * 2
        assert server.stop() == 0
        while (last := systemd.hears()) == "WATCHDOG=1":
            pass
        assert last == "STOPPING=1"


async def test_a_store_that_is_away_is_no_reason_to_start_the_server_again(
    processes: Processes, tmp_path: Path
) -> None:
    store = processes.redis()
    with listening(str(tmp_path / "notify")) as systemd:
        server = watched(processes, store, systemd)
        assert systemd.hears() == "READY=1"
        store.kill()
        await until(lambda: not server.is_ready())
        assert [systemd.hears() for _ in range(2)] == ["WATCHDOG=1"] * 2
        server.close()


@pytest.mark.parametrize(
    "age_s",
    [
        (-3600, 3600),  # its heartbeat gets old, though the others are well
        (math.inf, math.inf),  # all have died
    ],
)
async def test_a_process_that_hangs_keeps_the_service_silent(
    systemd: Systemd, age_s: tuple[float, float]
) -> None:
    service = Notifier({"NOTIFY_SOCKET": systemd.name, "WATCHDOG_USEC": "200000"}, os.getpid())
    pulses, stop = [time.monotonic() - age_s[0], 0.0], asyncio.Event()
    async with service.reporting(pulses, stop):
        pulses[1] = time.monotonic() - age_s[1]
        assert await asyncio.to_thread(systemd.hears) == "READY=1"
        await asyncio.sleep(0.3)  # three times the interval
        stop.set()
        assert await asyncio.to_thread(systemd.hears) == "STOPPING=1"


async def test_the_service_is_alive_while_a_process_that_has_died_is_not_replaced(
    systemd: Systemd,
) -> None:
    """As after an upgrade on the disk: the others serve on."""
    service = Notifier({"NOTIFY_SOCKET": systemd.name, "WATCHDOG_USEC": "200000"}, os.getpid())
    pulses, stop = [time.monotonic() + 3600, time.monotonic() - 3600], asyncio.Event()
    Process(pulses, [0.0], number=2).ended()
    async with service.reporting(pulses, stop):
        heard = [await asyncio.to_thread(systemd.hears) for _ in range(3)]
        stop.set()
    assert heard == ["READY=1", "WATCHDOG=1", "WATCHDOG=1"]
    assert Process(pulses, [0.0], number=2).is_replacement


async def test_a_watchdog_meant_for_another_process_gets_no_signs_of_life(
    systemd: Systemd,
) -> None:
    given = {"NOTIFY_SOCKET": systemd.name, "WATCHDOG_USEC": "200000", "WATCHDOG_PID": "1"}
    stop = asyncio.Event()
    async with Notifier(given, os.getpid()).reporting([time.monotonic()], stop):
        heard = [await asyncio.to_thread(systemd.hears) for _ in range(2)]
        await asyncio.sleep(0.3)
        stop.set()
        heard.append(await asyncio.to_thread(systemd.hears))
    assert heard == ["READY=1", "WATCHDOG=1", "STOPPING=1"]


async def test_a_server_goes_on_when_systemd_does_not_listen(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stop = asyncio.Event()
    service = Notifier({"NOTIFY_SOCKET": str(tmp_path / "nobody")}, os.getpid())
    async with service.reporting([time.monotonic()], stop):
        await until(lambda: "cannot tell systemd READY=1" in caplog.text)


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    needs("systemd-analyze", [])
    # it checks whether the program is there
    text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", UNIT.read_text("utf-8"), flags=re.M)
    (tmp_path / UNIT.name).write_text(text, encoding="utf-8")
    assert run(["systemd-analyze", "verify", "--man=no", str(tmp_path / UNIT.name)]) == ""
