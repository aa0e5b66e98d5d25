"""`delay-queue worker` with several processes, limits and an address for health checks."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import pytest

from delayqueue import AsyncClient, Worker
from delayqueue.client import Job, ReservedJob
from delayqueue.worker.figures import LATE_S, WorkerFigures
from delayqueue.worker.health import answering
from delayqueue.worker.process_limits import ProcessLimits
from delayqueue.worker.program import HANGS
from tests.processes import REPOSITORY, QueueServer, free_port
from tests.waiting import until, until_async

STOP_S: Final = 30.0
STARTS_S: Final = 120.0  # several processes start, one after the other
TURNS: Final = 10  # of the loop, in which a grace of 0 would be over
PROGRAM: Final = """
import os
from delayqueue import Worker
worker = Worker(concurrency=1)
kept = []
@worker.task({topic!r}, retry=["0s"])
def work(mebibytes: int = 0) -> str:
    kept.append(bytes(range(256)) * 4096 * mebibytes)
    return str(os.getpid())
"""


ENDLESS: Final = """
import asyncio
from pathlib import Path
@worker.lifespan
async def live():
    Path("started").touch()
    yield
    await asyncio.sleep(3600)
"""


@contextmanager
def workers(
    server: QueueServer, folder: Path, topic: str, *options: str, text: str = PROGRAM
) -> Iterator[subprocess.Popen[bytes]]:
    """Worker processes whose task keeps its process's id as its message."""
    (folder / "program.py").write_text(text.format(topic=topic), "utf-8")
    command = [sys.executable, "-m", "delayqueue", "worker", "program:worker", "--url", server.url]
    environ = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen([*command, *options], cwd=folder, env=environ, stderr=log) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()
            process.wait(STOP_S)


async def who_did(
    queue: AsyncClient, topic: str, count: int, *, mebibytes: int = 0, ttr: int = 60
) -> set[int]:
    """The processes that did that many jobs."""
    body = {"mebibytes": mebibytes}
    jobs = [Job(topic=topic, body=body, retain=600, ttr=ttr) for _ in range(count)]
    await queue.push_many(jobs)
    ids = [job.id for job in jobs]
    done: list[int] = []

    async def are_done() -> bool:
        found = [each for each in await queue.get_many(ids) if each and each.state == "finished"]
        done[:] = [int(each.message) for each in found]
        return len(done) == count

    await until_async(are_done, within_s=STARTS_S)
    return set(done)


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_process_that_dies_is_replaced_and_one_signal_ends_all(
    server: QueueServer, queue: AsyncClient, topic: str, tmp_path: Path
) -> None:
    seen: set[int] = set()
    with workers(server, tmp_path, topic, "--processes", "2") as supervisor:

        async def more_than(count: int) -> bool:
            # a process that is killed may have taken the job: it comes again after the TTR
            seen.update(await who_did(queue, topic, 1, ttr=1))
            return len(seen) > count

        await until_async(lambda: more_than(1), within_s=STARTS_S)
        for process in seen.copy():
            os.kill(process, signal.SIGKILL)
        await until_async(lambda: more_than(3), within_s=STARTS_S)
        supervisor.terminate()
        assert supervisor.wait(STOP_S) == 0
        assert not any(map(is_alive, seen))


async def test_a_process_ends_after_its_jobs_and_another_goes_on(
    server: QueueServer, queue: AsyncClient, topic: str, tmp_path: Path
) -> None:
    with workers(server, tmp_path, topic, "--processes", "2", "--max-jobs", "2"):
        assert len(await who_did(queue, topic, 9)) >= 3


async def test_a_worker_ends_when_it_holds_too_much_memory(
    server: QueueServer, queue: AsyncClient, topic: str, tmp_path: Path
) -> None:
    with workers(server, tmp_path, topic, "--max-memory", "300") as process:
        await who_did(queue, topic, 1)
        await who_did(queue, topic, 1, mebibytes=300)
        assert process.wait(STOP_S) == 0
    assert "no more jobs: it holds" in (tmp_path / "log").read_text("utf-8")


@pytest.mark.parametrize("is_told", [False, True])
async def test_a_worker_that_reaches_a_limit_lets_its_jobs_end_until_it_is_told_to_stop(
    server: QueueServer,
    queue: AsyncClient,
    topic: str,
    caplog: pytest.LogCaptureFixture,
    *,
    is_told: bool,
) -> None:
    caplog.set_level("INFO")
    worker, stop, seen = Worker(server.url), asyncio.Event(), list[str]()
    worker.limits = ProcessLimits(max_jobs=1)
    goes_on = asyncio.Event()

    @worker.on(topic)
    async def handle(job: ReservedJob) -> None:
        seen.append(f"begins {job.body}")
        if job.body == "long":
            await goes_on.wait()
        seen.append(f"ends {job.body}")

    working = asyncio.create_task(worker.work(stop, grace=0))
    job_id = await queue.push(topic, "long")
    await until(lambda: "begins long" in seen)
    await queue.push(topic, "short")
    await until(lambda: "jobs still running: 1" in caplog.text)
    for _ in range(TURNS):
        await asyncio.sleep(0)
    (stop if is_told else goes_on).set()
    await working
    assert seen == ["begins long", "begins short", "ends short", *["ends long"][is_told:]]
    assert (await queue.get(job_id) is None) is not is_told
    await queue.delete(job_id)


async def test_each_process_tells_what_it_has_done(
    server: QueueServer, queue: AsyncClient, topic: str, tmp_path: Path
) -> None:
    port = free_port()
    with workers(server, tmp_path, topic, "--health", f"127.0.0.1:{port}"):
        await who_did(queue, topic, 3)
        assert asked(port, "/healthz") == (200, "ok\n")
        ended = f'delayqueue_worker_jobs_total{{topic="{topic}",outcome="finished"}} 3\n'
        await until(lambda: ended in asked(port, "/metrics")[1])
        status, text = asked(port, "/metrics")
        assert status == 200
        assert f'delayqueue_worker_handler_seconds_count{{topic="{topic}"}} 3\n' in text
        assert "delayqueue_worker_running 0\n" in text
        assert asked(port, "/")[0] == 404


def asked(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=STOP_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.mark.parametrize("processes", ["1", "2"])
async def test_a_port_that_is_taken_is_said(
    server: QueueServer, topic: str, tmp_path: Path, processes: str
) -> None:
    port = int(server.url.rpartition(":")[2])
    options = "--health", f"127.0.0.1:{port}", "--processes", processes
    with workers(server, tmp_path, topic, *options) as process:
        assert process.wait(STARTS_S) == 2
    log = (tmp_path / "log").read_text("utf-8")
    assert f"--health 127.0.0.1:{port}: Address already in use" in log
    assert "Traceback" not in log


@pytest.mark.parametrize("is_told", [True, False])
async def test_a_lifespan_that_does_not_end_is_named(
    server: QueueServer, queue: AsyncClient, topic: str, tmp_path: Path, *, is_told: bool
) -> None:
    """Not as a handler that blocks the loop: nobody would find it. So it is when a limit ends the worker."""
    options = "--grace", "0", "--max-jobs", "1"
    with workers(server, tmp_path, topic, *options, text=PROGRAM + ENDLESS) as process:
        await until((tmp_path / "started").exists, within_s=STARTS_S)
        if is_told:
            process.terminate()
        else:
            await who_did(queue, topic, 1)
        assert await asyncio.to_thread(process.wait, STOP_S) == HANGS
    assert "or the lifespan takes too long to end" in (tmp_path / "log").read_text("utf-8")


async def test_a_worker_can_be_stopped_while_its_lifespan_starts(
    server: QueueServer, topic: str
) -> None:
    worker, stop, seen = Worker(server.url), asyncio.Event(), list[str]()
    worker.on(topic)(lambda _: None)

    @worker.lifespan
    async def live() -> AsyncGenerator[None, None]:
        try:
            stop.set()
            await asyncio.sleep(3600)
            yield
        finally:
            seen.append("closed")

    async with asyncio.timeout(STOP_S):
        await worker.work(stop)
    assert seen == ["closed"]


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no ::1")
def test_health_is_told_at_an_address_of_ipv6_too() -> None:
    with (
        answering("::1", 0, WorkerFigures()) as port,
        urllib.request.urlopen(f"http://[::1]:{port}/healthz", timeout=STOP_S) as answer,
    ):
        assert answer.read() == b"ok\n"


def test_a_blocked_loop_is_unhealthy(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = WorkerFigures()
    with answering("127.0.0.1", 0, figures) as port:
        assert asked(port, "/healthz")[0] == 200
        monkeypatch.setattr("time.monotonic", lambda now=figures.beat_s: now + LATE_S + 1)
        assert asked(port, "/healthz") == (503, "a handler blocks the loop for 16 s\n")


async def test_a_lifespan_that_starts_or_ends_slowly_is_not_unhealthy(
    server: QueueServer, topic: str
) -> None:
    """The loop goes on meanwhile; a probe would kill a worker that waits for its database."""
    worker, stop = Worker(server.url), asyncio.Event()
    worker.on(topic)(lambda _: None)

    async def beats() -> None:
        before_s = worker.figures.beat_s
        await until(lambda: worker.figures.beat_s > before_s, within_s=STOP_S)

    @worker.lifespan
    async def live() -> AsyncGenerator[None, None]:
        await beats()
        await beats()
        stop.set()
        yield
        await beats()
        await beats()

    await worker.work(stop)


def test_labels_are_escaped() -> None:
    figures = WorkerFigures()
    figures.ended('a"b\\c\nd', "finished")
    assert r'{topic="a\"b\\c\nd",outcome="finished"} 1' in figures.text()


def test_without_limits_a_worker_goes_on() -> None:
    assert Worker().limits == ProcessLimits(None, None)
    assert not ProcessLimits().reached(WorkerFigures())


def test_a_worker_that_is_too_large_from_its_start_does_a_job_before_it_is_replaced() -> None:
    figures, limits = WorkerFigures(), ProcessLimits(max_memory_mib=1)
    assert limits.reached(figures) == ""
    figures.ended("t", "finished")
    assert "MiB" in limits.reached(figures)


def test_figures_can_be_read_while_a_first_job_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread reads them, at whatever moment: as if whenever the time is asked for."""
    figures = WorkerFigures()
    clock = SimpleNamespace(monotonic=lambda: float(len(figures.text())))
    monkeypatch.setattr("delayqueue.worker.figures.time", clock)
    with figures.running("t"):
        pass
    assert 'handler_seconds_count{topic="t"} 1' in figures.text()


@pytest.mark.parametrize(
    ("processes", "program", "status", "words"),
    [
        ("1", "worker = undefined", 1, "program.py:1: NameError: name 'undefined' is not defined"),
        ("2", "import nonexistent", 1, "program.py:1: ModuleNotFoundError: No module named"),
        ("1", "worker = (", 1, "program.py:1: SyntaxError: "),
        (
            "2",
            "from delayqueue import Worker\nworker = Worker()\n@worker.task('t', cron='61 * * * *')\ndef t(): ...",
            1,
            "program.py:3: ValueError: t: Bad minute",
        ),
        ("1", "worker = 1", 2, "program:worker is a int; give MODULE:NAME of a Worker"),
        ("2", "other = 1", 2, "give MODULE:NAME of a Worker"),
    ],
)
def test_what_cannot_start_ends_the_program_with_one_line(
    tmp_path: Path, processes: str, program: str, status: int, words: str
) -> None:
    assert words in refused(tmp_path, program, status, "--processes", processes)


@pytest.mark.parametrize(
    ("processes", "url", "made", "words"),
    [
        ("1", "http://127.0.0.1:1", "client", "--url: program:worker has its client already"),
        ("2", "http://127.0.0.1:1", "async_client", "--url: program:worker has its async_client"),
        ("2", "", "client", "--url: program:worker has its client already"),
        ("1", "", "name", "URL : must be http://HOST:PORT"),
    ],
)
def test_a_url_that_would_not_be_used_is_refused(
    tmp_path: Path, processes: str, url: str, made: str, words: str
) -> None:
    """Tasks would be pushed to another server than the one whose jobs the worker takes."""
    program = (
        f"from delayqueue import Worker\nworker = Worker()\nworker.on('t')(print)\nworker.{made}"
    )
    options = "--url", url, "--processes", processes
    assert words in refused(tmp_path, program, 2, *options)


def refused(folder: Path, program: str, status: int, *options: str) -> str:
    """The line with which the worker ends."""
    (folder / "program.py").write_text(program, "utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "delayqueue", "worker", "program:worker", *options],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=STARTS_S,
        check=False,
    )
    assert ran.returncode == status, ran.stderr
    [line] = ran.stderr.splitlines()
    assert line.startswith("delay-queue: ")
    return line
