"""workers = N: several processes on one port, supervised by one."""

import asyncio
import logging
import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from delayqueue.config.startup import StartupError
from delayqueue.config.values import Address
from delayqueue.server import processes as server_processes
from delayqueue.server.ports import bound, hold
from delayqueue.server.processes import kill_hanging, supervise
from tests.api_client import open_api
from tests.figures import scrape
from tests.processes import LOOPBACK, REPOSITORY, Processes, QueueServer, StoreServer, free_port
from tests.waiting import until, until_async

WORKERS: Final = 2
START_S: Final = 60.0
SCRAPE_S: Final = 5.0
SOON_S: Final = 0.02
USAGE: Final = 2  # the status of a server that cannot start
SAYS_RESTART: Final = (
    "delay-queue: the program's files are not those that the server was started with, as after an upgrade; "
    "restart the server\n"
)
STUCK_S: Final = 5.0  # as in the alert DelayQueueTimerStuck


@pytest.fixture(scope="module")
def made(processes: Processes, redis_server: StoreServer) -> QueueServer:
    return processes.server(redis_server, workers=WORKERS)


@pytest.fixture
async def many(made: QueueServer) -> QueueServer:
    """All of its workers serve, though it is ready as soon as one does. It is started again for the next test."""
    if made.exit_status() is not None:
        made.log.write_bytes(b"")
        made.start()
    await until(lambda: made.logged().count("serving on") >= WORKERS, within_s=START_S)
    return made


def serving(server: QueueServer) -> list[int]:
    """The pids of the workers, without multiprocessing's own helper and an embedded store."""
    return [pid for pid in server.children() if b"spawn_main" in _command_line(pid)]


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return b""


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return b"Z (zombie)" not in Path(f"/proc/{pid}/status").read_bytes()


async def test_a_job_pushed_to_one_worker_wakes_a_poll_at_another(
    many: QueueServer, topic: str
) -> None:
    """Twenty connections are spread over the workers by the kernel."""
    async with open_api(many.url) as api:
        polls = [asyncio.create_task(api.pop(topic, timeout=20)) for _ in range(20)]
        for number in range(20):
            await api.push(topic=topic, id=f"{topic}-{number}", ttr=60)
        got = [(await poll).ok() for poll in polls]
    assert sorted(job["id"] for job in got) == sorted(f"{topic}-{n}" for n in range(20))


async def test_a_worker_that_is_stuck_is_shown_by_the_others_as_one_without_ticks(
    many: QueueServer,
) -> None:
    """An alert that waits for what the stuck worker itself tells would never ring."""
    first, _ = serving(many)
    os.kill(first, signal.SIGSTOP)
    try:
        await until_async(lambda: is_shown_stuck(many), within_s=2 * START_S)
    finally:
        os.kill(first, signal.SIGCONT)


async def is_shown_stuck(server: QueueServer) -> bool:
    """Ask on a new connection, as the kernel gives some to the stuck worker, too."""
    async with open_api(server.url) as api:
        try:
            async with asyncio.timeout(SCRAPE_S):
                samples = await scrape(api)
        except TimeoutError:
            return False
    ages = samples.rows("delayqueue_tick_age_seconds")
    return len(ages) == WORKERS and max(ages.values()) > STUCK_S


def work(folder: Path, number: int) -> None:
    """What a process does: it serves until somebody ends it, unless it cannot start."""
    if (folder / "broken").exists():
        raise StartupError("it is broken")
    (folder / f"{number}").write_text(str(os.getpid()))
    signal.pause()


async def test_a_worker_that_cannot_start_again_is_tried_until_it_can(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The reason why it cannot start may be gone soon, and the other worker serves."""
    stop = asyncio.Event()
    supervising = asyncio.create_task(
        supervise(WORKERS, lambda number: nullcontext(partial(work, tmp_path, number)), stop)
    )
    first, second = (tmp_path / str(number) for number in (1, 2))
    await until(lambda: all(is_written(file) for file in (first, second)), within_s=START_S)
    (tmp_path / "broken").touch()
    pid = int(first.read_text())
    first.unlink()
    os.kill(pid, signal.SIGKILL)
    await until(lambda: "(status 2), restarting it" in caplog.text, within_s=START_S)
    assert alive(int(second.read_text()))
    (tmp_path / "broken").unlink()
    await until(lambda: is_written(first), within_s=START_S)
    assert not stop.is_set()
    stop.set()
    await supervising


class Standstill(list[float]):
    """The pulses of workers, of which the second beats whenever somebody looks."""

    def __iter__(self) -> Iterator[float]:
        self[1] += 1
        return super().__iter__()


def log_cannot_be_written(record: logging.LogRecord) -> bool:
    if "hangs" in record.msg:
        raise BlockingIOError
    return True


async def test_a_worker_that_hangs_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it hangs because the log, which all of them write to, takes nothing more."""
    monkeypatch.setattr(server_processes, "HANGS_S", 2)
    stop = asyncio.Event()
    prepare = lambda number: nullcontext(partial(work, tmp_path, number))  # noqa: E731
    supervising = asyncio.create_task(supervise(WORKERS, prepare, stop))
    first, second = (tmp_path / str(number) for number in (1, 2))
    await until(lambda: is_written(first) and is_written(second), within_s=START_S)
    hung, well = first.read_text(), second.read_text()
    first.unlink()
    monkeypatch.setattr(server_processes.log, "filters", [log_cannot_be_written])
    with pytest.raises(BlockingIOError):
        await kill_hanging(Standstill([1.0, 1.0]))
    await until(lambda: is_written(first), within_s=START_S)
    assert not alive(int(hung))
    assert alive(int(well))
    assert second.read_text() == well
    stop.set()
    await supervising


def work_to_the_end(folder: Path, number: int) -> None:
    """What a process does that still answers its last requests when it is told to end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    (folder / f"{number}").write_text(str(os.getpid()))
    while not (folder / "done").exists():
        time.sleep(SOON_S)


async def test_the_port_is_free_as_soon_as_the_workers_are_told_to_end(tmp_path: Path) -> None:
    """So that the next server can start while this one answers its last requests."""
    address = Address(LOOPBACK, free_port())
    port = bound(address)
    hold(port)
    stop = asyncio.Event()
    prepare = lambda number: nullcontext(partial(work_to_the_end, tmp_path, number))  # noqa: E731
    supervising = asyncio.create_task(supervise(1, prepare, stop, ports=[port], stop_s=START_S))
    await until(lambda: is_written(tmp_path / "1"), within_s=START_S)
    with pytest.raises(OSError, match="in use"):
        bound(address)
    stop.set()
    await until(lambda: port.fileno() < 0)
    bound(address).close()
    assert not supervising.done()
    (tmp_path / "done").touch()
    await supervising


def is_written(file: Path) -> bool:
    return file.exists() and bool(file.read_text())


async def test_of_two_servers_that_start_together_on_one_port_one_serves(
    processes: Processes, redis_server: StoreServer
) -> None:
    """Workers share a port: with two servers there, a client would reach now the one, now the other store."""
    address = f"{LOOPBACK}:{free_port()}"
    both = [
        processes.configured("", redis_server, bind_address=address, workers=WORKERS)
        for _ in range(2)
    ]
    for server in both:
        server.launch()
    await until(lambda: any(server.exit_status() is not None for server in both), within_s=START_S)
    [serving] = [server for server in both if server.exit_status() is None]
    await until(lambda: serving.logged().count("serving on") == WORKERS, within_s=START_S)
    assert serving.stop() == 0
    [refused] = [server for server in both if server is not serving]
    assert refused.exit_status() == USAGE
    assert "Address already in use; stop what listens there" in refused.logged()


async def test_a_worker_that_dies_after_an_upgrade_is_not_replaced_by_the_new_version(
    processes: Processes, redis_server: StoreServer, tmp_path: Path
) -> None:
    """The new version has other settings, and would take one for another; the other worker serves."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "delayqueue", tmp_path / "delayqueue", ignore=ignored)
    server = processes.configured("language = en\n", redis_server, workers=WORKERS)
    server.wrap("env", f"PYTHONPATH={tmp_path}")
    server.start()
    await until(lambda: server.logged().count("serving on") == WORKERS, within_s=START_S)
    config = tmp_path / "delayqueue" / "config" / "config.py"
    first = "    bind_address: Address"
    before, after = config.read_text("utf-8").split(first)
    added = '    added: str = option("", str, "a setting of the new version")\n'
    config.write_text(f"{before}{added}{first}{after}", encoding="utf-8")
    os.kill(serving(server)[0], signal.SIGKILL)
    await until(lambda: SAYS_RESTART in server.logged(), within_s=START_S)
    await until(server.is_ready)
    assert "Traceback" not in server.logged()

    assert server.stop() == 0
    server.start()
    served = 2 * WORKERS
    await until(lambda: server.logged().count("serving on") == served, within_s=START_S)
    assert server.stop() == 0


async def test_one_signal_stops_all(many: QueueServer) -> None:
    workers = serving(many)
    assert many.stop() == 0
    assert not [pid for pid in workers if alive(pid)]


async def test_workers_end_with_a_supervisor_that_is_killed(many: QueueServer) -> None:
    workers = serving(many)
    many.kill()
    await until(lambda: not [pid for pid in workers if alive(pid)])
