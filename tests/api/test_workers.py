"""workers = N: several processes on one port, supervised by one."""

import asyncio
import os
import shutil
import signal
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from delayqueue.config.startup import StartupError
from delayqueue.server.processes import supervise
from tests.api_client import open_api
from tests.figures import scrape
from tests.processes import REPOSITORY, Processes, QueueServer, StoreServer
from tests.waiting import until, until_async

WORKERS: Final = 2
RESTART_S: Final = 10.0
START_S: Final = 60.0
SCRAPE_S: Final = 5.0
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
        await until_async(lambda: is_shown_stuck(many), within_s=RESTART_S + START_S)
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


def is_written(file: Path) -> bool:
    return file.exists() and bool(file.read_text())


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
    await until(lambda: not [pid for pid in workers if alive(pid)], within_s=RESTART_S)
