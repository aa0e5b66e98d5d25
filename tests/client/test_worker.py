"""Workers as programs of their own, against a real server."""

import asyncio
import logging
import os
import secrets
import signal
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from delayqueue import testing
from delayqueue.client import AsyncClient, Job, ReservedJob, TransportError
from delayqueue.client.api_request import ApiRequest
from delayqueue.domain.job import MAX_BATCH, MAX_MESSAGE_CHARS, MAX_POP_TOPICS
from delayqueue.worker import Bury, Retry, Worker
from delayqueue.worker.program import HANGS
from tests.client.conftest import at_work, until_state
from tests.earlier import BEFORE_NAMES, strict_server
from tests.forkserver import Forked
from tests.processes import (
    REPOSITORY,
    Processes,
    QueueServer,
    StoreServer,
    fork_server,
)
from tests.waiting import PATIENCE_S, until, until_async

STOP_S: Final = 30.0
NOWHERE: Final = Path(os.devnull)  # for what it prints
TASKS: Final = "tests.client.tasks:worker"
WORKERS: Final = 4
TOUCHES_LOST: Final = 2
JOBS: Final = int(os.environ.get("WORKER_JOBS", "1000"))  # that fail at random


class Trace:
    """What the handlers did."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> list[str]:
        return self.path.read_text("utf-8").splitlines() if self.path.exists() else []


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return Trace(tmp_path / "trace")


@contextmanager
def working(server: QueueServer, trace: Trace, concurrency: int = 10) -> Iterator[Forked]:
    """A worker program."""
    options = ["--log-level", "error", "--concurrency", str(concurrency), "--url", server.url]
    with program(TASKS, *options, TRACE=trace.path) as process:
        yield process


@contextmanager
def program(
    *arguments: str, cwd: Path = REPOSITORY, err: Path = NOWHERE, **variables: object
) -> Iterator[Forked]:
    """A worker program with these arguments, and these variables in its environment."""
    environ = os.environ | {name: str(value) for name, value in variables.items()}
    process = fork_server().launch("delayqueue", ["worker", *arguments], cwd, environ, NOWHERE, err)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_S)


def batches(jobs: Sequence[Job]) -> Iterator[Sequence[Job]]:
    """As many at a time as a call takes."""
    for at in range(0, len(jobs), MAX_BATCH):
        yield jobs[at : at + MAX_BATCH]


def first_line(message: str) -> str:
    """A message without the traceback below it."""
    return message.partition("\n")[0]


async def test_a_worker_tells_who_it_is_and_its_touches_show_that_it_is_alive(
    server: QueueServer, queue: AsyncClient
) -> None:
    worker, stop = Worker(server.url, concurrency=1, version="9.1"), asyncio.Event()
    worker.name = secrets.token_hex(4)

    @worker.on("seen")
    async def handle(_: ReservedJob) -> None:
        await stop.wait()

    host, pid = socket.gethostname(), os.getpid()
    job_id = await queue.push("seen", ttr=3)
    before = 0.0

    async def extended() -> bool:
        nonlocal before
        for one in await queue.workers():
            if one.name == f"{worker.name}@{host}:{pid}" and one.in_hand:
                before = before or one.seen
                assert (one.version, one.host, one.pid, one.concurrency) == ("9.1", host, pid, 1)
                return one.seen > before + 1
        return False

    async with at_work(worker):
        await until_async(extended)
        details = await queue.get(job_id)
        assert details is not None
        assert details.worker == f"{worker.name}@{host}:{pid}"
        stop.set()


async def test_a_worker_does_without_its_name_at_a_server_that_does_not_know_the_field(
    processes: Processes, redis_server: StoreServer, caplog: pytest.LogCaptureFixture
) -> None:
    server = strict_server(BEFORE_NAMES, processes, redis_server)
    worker, done = Worker(server.url), list[str]()

    @worker.on("order")
    async def handle(job: ReservedJob) -> None:
        done.append(job.id)

    async with at_work(worker), AsyncClient(server.url) as queue:
        ids = [await queue.push("order") for _ in range(2)]
        await until(lambda: sorted(done) == sorted(ids))
    refused = [one.getMessage() for one in caplog.records if "worker: unknown" in one.getMessage()]
    assert len(refused) == 1
    assert "polls without it" in refused[0]


async def test_jobs_that_take_longer_than_their_ttr_are_not_given_to_another(
    server: QueueServer, queue: AsyncClient, trace: Trace
) -> None:
    ids = [await queue.push(topic, "5.2", ttr=4) for topic in ("slow", "slow-thread")]
    with working(server, trace):
        for job_id in ids:
            await until_state(queue, job_id, None)
    said = [f"{does} {job_id} 1" for job_id in ids for does in ("slow", "slept")]
    assert sorted(trace.lines()) == sorted(said)


class CutClient(AsyncClient):
    """Its first touches get no answer."""

    touches = 0

    async def send(self, request: ApiRequest[Any]) -> Any:
        if request.path == "/touch":
            self.touches += 1
            if self.touches <= TOUCHES_LOST:
                raise TransportError("cut off")
        return await super().send(request)


async def test_a_touch_that_failed_is_soon_tried_again(
    server: QueueServer, queue: AsyncClient, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A third of the TTR later might be too late, although the server is back long since."""
    worker, end = Worker(server.url), asyncio.Event()
    client = worker.async_client = CutClient(server.url)

    @worker.on(topic)
    async def handle(_: ReservedJob) -> None:
        await end.wait()

    await queue.push(topic, ttr=600)
    async with at_work(worker):
        await until(lambda: client.touches > TOUCHES_LOST)
        end.set()
    told = [one for one in caplog.records if "could not be extended" in one.getMessage()]
    assert len(told) == 1


async def test_a_job_that_always_fails_is_buried_in_the_end(
    server: QueueServer, queue: AsyncClient, trace: Trace
) -> None:
    poisoned = await queue.push("poison")
    patient = await queue.push("poison", retry=[0, 0, 0])  # its own schedule wins
    hung = await queue.push("too-long")
    thread = await queue.push("too-long-thread", "5")
    finished = await queue.push("returns", retain=3600)
    jobs = [poisoned, patient, hung, thread]

    async def ended() -> bool:
        details = await queue.get_many([*jobs, finished])
        return [one.state for one in details if one] == ["buried"] * 4 + ["finished"]

    with working(server, trace, concurrency=1):
        await until_async(ended)
        # the hanging thread has the only slot until it ends
        await until_state(queue, await queue.push("invoice"), None)
        assert f"ends {thread}" in trace.lines()
    assert trace.lines()[-1] == f"shipped {finished}"
    found = [one for one in await queue.get_many([*jobs, finished]) if one]
    assert [one.attempt for one in found] == [2, 4, 1, 1, 1]
    assert [first_line(one.message) for one in found] == [
        *("ValueError: always", "ValueError: always", "timeout: 0.1 s", "timeout: 0.1 s"),
        "shipped",
    ]
    assert "in poisoned\n    raise ValueError" in found[0].message
    assert "in too_long\n" in found[2].message


async def test_a_job_that_kills_its_workers_is_buried_in_the_end(
    server: QueueServer, queue: AsyncClient, trace: Trace
) -> None:
    job_id = await queue.push("deadly", ttr=1)
    for _ in range(2):
        with working(server, trace) as process:
            assert await asyncio.to_thread(process.wait, STOP_S) == 9
    with working(server, trace):
        await until_state(queue, job_id, "buried")
        assert trace.lines() == [f"deadly {job_id}"] * 2
        await queue.kick(job_id)  # which gives it another chance
        await until(lambda: len(trace.lines()) == 3)
    await queue.delete(job_id)


async def test_what_a_handler_raises_that_is_stopped_is_its_own_error(
    server: QueueServer, queue: AsyncClient, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    worker, begun = Worker(server.url), asyncio.Event()

    @worker.on(topic)
    async def handle(job: ReservedJob) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("cannot close")

    async with at_work(worker):
        job_id = await queue.push(topic, ttr=1)
        await begun.wait()
        await queue.delete(job_id)
        await until(
            lambda: f"job {job_id} of {topic}, attempt 1: OSError: cannot close" in caplog.text
        )
    assert "bug in the worker" not in caplog.text


async def test_a_worker_that_is_told_to_stop_ends_what_it_has_begun(
    server: QueueServer, queue: AsyncClient, trace: Trace
) -> None:
    job_id = await queue.push("slow", "0.7")
    with working(server, trace) as process:
        await until(lambda: bool(trace.lines()))
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, STOP_S) == 0
    assert trace.lines()[-1] == f"slept {job_id} 1"
    assert await queue.get(job_id) is None


@pytest.mark.parametrize("is_stopping", [False, True])
async def test_a_worker_that_is_cancelled_takes_no_more_jobs_and_leaves_none_running(
    server: QueueServer,
    queue: AsyncClient,
    topic: str,
    caplog: pytest.LogCaptureFixture,
    *,
    is_stopping: bool,
) -> None:
    caplog.set_level("INFO")
    worker, stop, handled = Worker(server.url), asyncio.Event(), list[str]()

    @worker.on(topic)
    async def handle(job: ReservedJob) -> None:
        handled.append(f"began {job.id}")
        try:
            await asyncio.Event().wait()
        finally:
            handled.append(f"left {job.id}")

    working = asyncio.create_task(worker.work(stop))
    first_id = await queue.push(topic)
    await until(lambda: bool(handled))
    if is_stopping:
        stop.set()
        await until(lambda: "stopping" in caplog.text)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert handled == [f"began {first_id}", f"left {first_id}"]
    second_id = await queue.push(topic)
    job = await queue.pop(topic, wait=20)
    assert job is not None
    assert job.id == second_id


async def test_the_thread_of_a_job_that_is_cancelled_keeps_its_place_until_it_ends(
    server: QueueServer, queue: AsyncClient, topic: str
) -> None:
    worker, begun, goes_on = Worker(server.url, concurrency=1), list[str](), threading.Event()

    @worker.on(topic)
    def handle(job: ReservedJob) -> None:
        begun.append(job.id)
        goes_on.wait()

    async with at_work(worker):
        first_id = await queue.push(topic)
        await until(lambda: begun == [first_id])
        await queue.delete(first_id)
        second_id = await queue.push(topic)
        await asyncio.sleep(2)  # the worker looks after its job several times
        assert begun == [first_id]
        goes_on.set()
        await until_state(queue, second_id, None)
        assert begun == [first_id, second_id]


async def test_every_job_is_finished_or_buried_whatever_fails(
    server: QueueServer, queue: AsyncClient, trace: Trace
) -> None:
    jobs = [Job(topic="random", retry=[0, 0]) for _ in range(JOBS)]
    for batch in batches(jobs):
        await queue.push_many(batch)

    async def ended() -> bool:
        (counts,) = await queue.topics("random")
        return counts.delayed + counts.ready + counts.reserved == 0

    with ExitStack() as workers:
        for _ in range(WORKERS):
            workers.enter_context(working(server, trace))
        await until_async(ended, within_s=PATIENCE_S + JOBS / 100)
    left = [
        job for batch in batches(jobs) for job in await queue.get_many([one.id for one in batch])
    ]
    buried = {job.id: job.message for job in left if job and job.state == "buried"}
    finished = Counter(line.removeprefix("random ") for line in trace.lines())
    assert finished == Counter({job.id: 1 for job in jobs if job.id not in buried})
    assert len(finished) + len(buried) == JOBS
    assert sum(job is not None for job in left) == len(buried)
    assert set(map(first_line, buried.values())) == {"no use", "RuntimeError: bad luck"}


async def test_more_jobs_may_run_at_once_than_a_pop_can_bring(
    server: QueueServer, queue: AsyncClient, trace: Trace
) -> None:
    job_id = await queue.push("invoice")
    with working(server, trace, concurrency=1001):
        await until_state(queue, job_id, None)


async def test_a_worker_has_more_topics_than_a_poll_and_no_more_jobs_at_once_than_it_may(
    server: QueueServer, queue: AsyncClient
) -> None:
    worker = Worker(server.url, concurrency=2)
    prefix = secrets.token_hex(4)
    running: set[str] = set()
    most: list[int] = []
    done: list[str] = []

    async def handle(job: ReservedJob) -> None:
        running.add(job.id)
        most.append(len(running))
        await asyncio.sleep(0.01)
        running.remove(job.id)
        done.append(job.topic)

    topics = [f"{prefix}-{number}" for number in range(3 * MAX_POP_TOPICS)]
    worker.on(*topics)(handle)
    await queue.push_many([Job(topic=topic) for topic in topics])
    async with at_work(worker):
        await until(lambda: len(done) == len(topics))
        done.clear()
        for topic in topics[:: MAX_POP_TOPICS - 1]:  # one by one, while it waits
            await queue.push(topic)
            await until(lambda topic=topic: topic in done)  # type: ignore[misc]  # mypy guesses no default
        # in all polls at once
        await queue.push_many([Job(topic=topic, delay=0.5) for topic in topics])
        await until(lambda: len(done) == 4 + len(topics))
    assert max(most) == 2


@pytest.mark.parametrize("end", ["returns", "raises", "waits"])
async def test_a_handler_that_cancels_itself_is_reported_as_any_other(
    server: QueueServer, queue: AsyncClient, topic: str, end: str
) -> None:
    worker = Worker(server.url)

    @worker.on(topic, retry=[])
    async def handle(_: ReservedJob) -> str:
        itself = asyncio.current_task()
        assert itself
        itself.cancel()
        if end == "raises":
            raise LookupError("all the same")
        if end == "waits":
            await asyncio.sleep(3600)
        return "done"

    job_id = await queue.push(topic, retain=600)
    async with at_work(worker):
        ended = await queue.get(job_id, wait=STOP_S)
    assert ended
    messages = {"returns": "done", "raises": "LookupError: all the same", "waits": "CancelledError"}
    assert first_line(ended.message) == messages[end]
    assert ended.state == ("finished" if end == "returns" else "buried")
    verdict = await testing.arun(worker, topic, attempt=1)
    assert first_line(verdict.message) == messages[end]


MISBEHAVIOUR: Final = {
    ("misbehaves", "exit"): "SystemExit: 3",
    ("misbehaves", "interrupt"): "KeyboardInterrupt",
    ("misbehaves", "timeout"): "Timeout: too late",
    ("misbehaves", "cancel"): "RuntimeError: CancelledError",
    ("misbehaves", "stop iteration"): "RuntimeError: StopIteration",
    ("misbehaves", "file name"): "OSError: caf\\udce9",
    (
        "misbehaves",
        "unspeakable",
    ): "UnspeakableError: (UnspeakableError, whose text is not available: Timeout)",
    ("misbehaves", "huge"): ("ValueError: " + "A" * MAX_MESSAGE_CHARS)[:MAX_MESSAGE_CHARS],
    ("misbehaves", "delay"): "ValueError: delay nan: must be 0 to 2147483648 seconds",
    ("misbehaves-async", "exit"): "SystemExit: 3",
    ("misbehaves-async", "interrupt"): "KeyboardInterrupt",
    ("misbehaves-async", "timeout"): "Timeout: too late",
    ("misbehaves-async", "cancel"): "CancelledError",
    ("misbehaves-async", "file name"): "OSError: caf\\udce9",
    ("misbehaves-async", "leave a task"): "LookupError: done: True",
}


async def test_a_handler_that_misbehaves_has_failed_by_its_schedule(
    server: QueueServer, queue: AsyncClient, trace: Trace
) -> None:
    jobs = {
        await queue.push(topic, body, retry=[0.1]): message
        for (topic, body), message in MISBEHAVIOUR.items()
    }

    async def are_buried() -> bool:
        found = await queue.get_many(list(jobs))
        return all(job and job.state == "buried" for job in found)

    with working(server, trace) as process:
        await until_async(are_buried)
        await until_state(queue, await queue.push("invoice"), None)
        assert process.poll() is None
    for job in await queue.get_many(list(jobs)):
        assert job
        said = [first_line(attempt.message) for attempt in job.attempts]
        assert said == [jobs[job.id]] * 2, job.body


@pytest.mark.parametrize(
    ("topic", "status"),
    [("hangs", 0), ("hangs-async", 0), ("hangs-thread", 0), ("hangs-loop", HANGS)],
)
async def test_a_handler_that_hangs_does_not_keep_the_worker_from_ending(
    server: QueueServer, queue: AsyncClient, trace: Trace, topic: str, status: int
) -> None:
    job_id = await queue.push(topic, ttr=60)
    options = ["--grace", "300ms", "--url", server.url]
    with program(TASKS, *options, TRACE=trace.path) as process:
        await until(lambda: trace.lines() == [f"hangs {job_id}"])
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, STOP_S) == status
    await queue.delete(job_id)


async def test_a_second_interrupt_ends_a_worker_at_once(
    server: QueueServer, queue: AsyncClient, trace: Trace
) -> None:
    await queue.push("slow", "60")
    with working(server, trace) as process:
        await until(lambda: bool(trace.lines()))

        def has_ended() -> bool:
            process.send_signal(signal.SIGINT)
            return process.poll() is not None

        await until(has_ended)
        assert process.poll() == -signal.SIGINT
    await queue.purge("slow")


async def test_jobs_that_end_while_the_server_is_away_are_reported_when_it_is_back(
    processes: Processes, redis_server: StoreServer, trace: Trace
) -> None:
    server = processes.server(redis_server)
    async with AsyncClient(server.url) as queue:
        jobs = [Job(topic="slow", body="1", ttr=60) for _ in range(5)]
        failing = Job(topic="steered", body="fail", retry=[0.1], ttr=60)
        await queue.push_many(jobs)
        with working(server, trace):
            await until(lambda: len(trace.lines()) >= 5)
            server.kill()
            await until(lambda: len(trace.lines()) == 10)
            await asyncio.sleep(1.5)  # longer than clients retry
            server.start()
            for job in jobs:
                await until_state(queue, job.id, None)
            await queue.push_many([failing])
            await until_state(queue, failing.id, None)
    words = Counter(line.split()[0] for line in trace.lines())
    assert words == {"slow": 5, "slept": 5, "steered": 1}


def reloaded(folder: Path, server: QueueServer, topic: str, does: str) -> Path:
    """The module of a worker, whose handler of the topic does this."""
    (folder / "mine.py").write_text(
        "from pathlib import Path\nfrom time import sleep\nfrom delayqueue import Worker\n"
        f"worker = Worker({server.url!r})\n@worker.on({topic!r})\ndef work(job): {does}\n"
    )
    return folder / "mine.py"


async def test_a_change_of_the_code_is_taken_up(
    server: QueueServer, queue: AsyncClient, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    does = f"Path({str(said)!r}).write_text('old ' + job.body)"
    module = reloaded(tmp_path, server, "reload", does)
    with program("mine:worker", "--reload", cwd=tmp_path, PYTHONPATH=REPOSITORY) as process:
        await queue.push("reload", "1")
        await until(lambda: said.exists() and said.read_text() == "old 1")
        module.write_text(module.read_text().replace("'old", "'new!"))

        async def is_new() -> bool:
            """The worker that is about to end takes some jobs, too."""
            await queue.push("reload", "2")
            return said.read_text() == "new! 2"

        await until_async(is_new)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, STOP_S) == 0
    await queue.purge("reload")


async def test_a_worker_that_is_being_restarted_can_be_ended(
    server: QueueServer, queue: AsyncClient, tmp_path: Path
) -> None:
    said, err = tmp_path / "said", tmp_path / "err"
    does = f"Path({str(said)!r}).touch(); sleep(60)"
    module = reloaded(tmp_path, server, "restarted", does)
    with program(
        "mine:worker", "--reload", cwd=tmp_path, err=err, PYTHONPATH=REPOSITORY
    ) as process:
        await queue.push("restarted")
        await until(said.exists)
        module.write_text(module.read_text() + "# changed\n")
        await until(lambda: "restarting" in err.read_text())  # the old one waits for its handler
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, STOP_S) == 0
    await queue.purge("restarted")


async def test_the_log_names_the_server_and_each_job_that_ended(
    server: QueueServer, queue: AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    topic, worker = f"told-{secrets.token_hex(4)}", Worker(server.url)

    @worker.on(topic)
    def handle(body: str) -> None:
        if body != "good":
            raise {"later": Retry(60), "never": Bury("no use")}[body]

    ids = {body: await queue.push(topic, body) for body in ("good", "later", "never")}
    with caplog.at_level(logging.INFO, "delayqueue.worker"):
        async with at_work(worker):  # a failure has its reason, too
            await until(lambda: caplog.text.count("attempt 1: ") >= 5)
    assert f"waiting for jobs of {topic} at {server.url}" in caplog.text
    ends = {"good": "finished", "later": "released", "never": "buried"}
    for body, end in ends.items():
        assert f"job {ids[body]} of {topic}, attempt 1: {end}" in caplog.text
