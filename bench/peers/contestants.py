"""What is compared: a queue on a store of its own, and programs that push to it and work."""

import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import delayqueue
from bench.load import loading, run
from bench.measure import new_topic
from bench.peers import installed
from bench.peers.side import BODY_DIGITS
from bench.processes import (
    BenchError,
    cpu_seconds,
    listeners,
    program,
    resident_bytes,
)
from bench.target import Original, Own, Server, StoreView, own_store
from tests.processes import free_port

REPOSITORY: Final = Path(__file__).parents[2]
AT_ONCE: Final = 50  # pushes, and jobs of a worker: BullMQ's example of its `concurrency`
TAKEN: Final = (
    10  # jobs that a worker takes at a time, where there are arrays: ours, as our Worker does
)
LIMIT_S: Final = 180
SHARES: Final = (50, 99, 100)  # percent of the jobs
OURS: Final = f"this server {delayqueue.__version__}, Python {sys.version.split()[0]}"

Pids = dict[str, list[int]]


class Span(NamedTuple):
    """When the jobs of a load began and ended, Unix times."""

    began_at: float
    ended_at: float


class Worked(NamedTuple):
    """When the last job was with a worker, Unix time, and how late p50, p99 and the latest were."""

    ended_at: float
    late_ms: list[float]


class Contestant(Protocol):
    """A queue with its programs. What pushes or works raises BenchError if that fails.

    `arrays`: whether it takes many jobs at once. `least_s`: the least delay that it takes. `pids`: those of its server,
    if it has one, and of its Redis.
    """

    version: str
    arrays: bool
    least_s: int
    pids: Pids

    def begin(self) -> None:
        """What follows has nothing to do with the jobs of before."""

    def push(self, jobs: int, **how: float) -> Span:
        """Push jobs. `how`, with defaults: `batch` 1 job a request, `at_once` AT_ONCE requests, `from_s` 0 to `to_s` 0
        seconds of delay, or `due`, Unix time; `rate`, requests a second at most.
        """

    def working(self, jobs: int) -> contextlib.AbstractContextManager[Callable[[], Worked]]:
        """Handle so many jobs, from the start of the block. What it gives waits for their end."""

    def program_s(self) -> float:
        """Processor time that the programs have used so far."""

    def memory(self) -> int:
        """Bytes of its Redis, or of its server if it has no Redis."""


class OverHttp:
    """This server or the original, with wrk in the place of programs."""

    def __init__(self, version: str, server: Server, *, arrays: bool, least_s: int) -> None:
        self.version, self.arrays, self.least_s = version, arrays, least_s
        self.pids = {"server": listeners(server.port)} | _redis(server.store)
        self._server = server
        self.begin()

    def begin(self) -> None:
        self._topic = new_topic()

    def push(self, jobs: int, **how: float) -> Span:
        script = "pace.lua" if "rate" in how else "push.lua"
        times = {"delay_from": how.pop("from_s", 0), "delay_to": how.pop("to_s", 0)}
        connections = int(how.pop("at_once", AT_ONCE))
        options = times | how | {"count": jobs, "body_bytes": BODY_DIGITS, "seconds": LIMIT_S}
        done = run(script, self._server, self._topic, connections=connections, **options)
        if done.jobs < jobs:
            raise BenchError(f"{jobs - done.jobs} jobs were not pushed within {LIMIT_S} s")
        return Span(done.began_at, done.ended_at)

    @contextlib.contextmanager
    def working(self, jobs: int) -> Iterator[Callable[[], Worked]]:
        with loading(
            "drain.lua",
            self._server,
            self._topic,
            connections=AT_ONCE // TAKEN if self.arrays else AT_ONCE,
            batch=TAKEN,
            seconds=LIMIT_S,
            count=jobs,
        ) as consumers:

            def worked() -> Worked:
                found = consumers.result()
                if found.jobs < jobs:
                    raise BenchError(f"{jobs - found.jobs} jobs did not come")
                return Worked(found.ended_at, [found.late(share) for share in SHARES])

            yield worked

    def program_s(self) -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    def memory(self) -> int:
        return int(self._server.store.info("used_memory"))


class Program:
    """A running program that carries out orders; side.py says how."""

    def __init__(self, command: Sequence[str]) -> None:
        self._name = Path(command[-2]).name
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        )
        self.pid = self._child.pid

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()  # what it holds is removed with its store
        self._child.communicate()

    def order(self, do: str, **asked: float) -> None:
        """Tell it what to do."""
        whole = {name: round(value) for name, value in asked.items()}
        if self._child.stdin:
            self._child.stdin.write(json.dumps({"do": do} | whole) + "\n")
            self._child.stdin.flush()

    def answer(self) -> Any:
        """Wait for its answer. Raises BenchError if none comes."""
        timer = threading.Timer(LIMIT_S, self._child.kill)
        timer.start()
        line = self._child.stdout.readline() if self._child.stdout else ""
        timer.cancel()
        if not line:
            raise BenchError(f"{self._name} has ended, or did not answer within {LIMIT_S} s")
        return json.loads(line)


Programs = tuple[Program, Program]


class ByProgram:
    """A queue whose library is in a program of ours. That runs twice: one pushes, one works."""

    least_s = 0

    def __init__(
        self, version: str, pids: Pids, store: StoreView | None, programs: Programs, *, arrays: bool
    ) -> None:
        self.version, self.pids, self.arrays = version, pids, arrays
        self._store = store
        self._pusher, self._worker = programs

    def begin(self) -> None:
        pass  # a load ends with its last job

    def push(self, jobs: int, **how: float) -> Span:
        times = {
            "from_ms": 1000 * how.pop("from_s", 0),
            "to_ms": 1000 * how.pop("to_s", 0),
            "due_ms": 1000 * how.pop("due", 0),
        }
        asked: dict[str, float] = {"batch": 1, "at_once": AT_ONCE, "rate": 0} | times | how
        began_at = time.time()
        self._pusher.order("push", jobs=jobs, **asked)
        self._pusher.answer()
        return Span(began_at, time.time())

    @contextlib.contextmanager
    def working(self, jobs: int) -> Iterator[Callable[[], Worked]]:
        self._worker.order("work", jobs=jobs, at_once=AT_ONCE)
        self._worker.answer()

        def worked() -> Worked:
            late_ms: list[float] = self._worker.answer()["late_ms"]
            places = (max(0, jobs * share // 100 - 1) for share in SHARES)
            return Worked(time.time(), [late_ms[place] for place in places])

        yield worked

    def program_s(self) -> float:
        return cpu_seconds([self._pusher.pid, self._worker.pid])

    def memory(self) -> int:
        if self._store is None:
            return resident_bytes(self.pids["server"])
        return int(self._store.info("used_memory"))


@contextlib.contextmanager
def ours() -> Iterator[Contestant]:
    """This server over HTTP."""
    with Own("ours", {}).running() as server:
        yield OverHttp(OURS, server, arrays=True, least_s=0)


@contextlib.contextmanager
def ours_in_python() -> Iterator[Contestant]:
    """This server with its client and its Worker in Python."""
    command = [sys.executable, "-m", "bench.peers.ours"]
    with Own("ours", {}).running() as server, _programs(command, server.port) as programs:
        yield _ours(f"{OURS}, AsyncClient, Worker", server, programs)


@contextlib.contextmanager
def ours_by_beanstalk() -> Iterator[Contestant]:
    """This server through beanstalkd's protocol."""
    command, version = installed.in_go("github.com/beanstalkd/go-beanstalk", "beanstalkd")
    port = free_port()
    options = {"beanstalk_address": f"127.0.0.1:{port}"}
    with Own("ours", options).running() as server, _programs(command, port) as programs:
        yield _ours(f"{OURS}, {version}", server, programs)


def _ours(version: str, server: Server, programs: Programs) -> Contestant:
    pids = {"server": listeners(server.port)} | _redis(server.store)
    return ByProgram(version, pids, server.store, programs, arrays=True)


@contextlib.contextmanager
def original(path: Path | None) -> Iterator[Contestant]:
    """ouqiang/delay-queue over HTTP. Raises BenchError without a path: nothing here can install it."""
    if path is None:
        raise BenchError("name its program: --ouqiang PROGRAM")
    with Original("ouqiang", path).running() as server:
        yield OverHttp(path.name, server, arrays=False, least_s=1)


@contextlib.contextmanager
def beanstalkd() -> Iterator[Contestant]:
    """beanstalkd, with a log that is on disk within a second, as the others' Redis with appendfsync everysec."""
    command, version = installed.in_go("github.com/beanstalkd/go-beanstalk", "beanstalkd")
    versions, port = f"{installed.beanstalkd()}, {version}", free_port()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        server = ["beanstalkd", "-l", "127.0.0.1", "-p", str(port), "-b", folder, "-f", "1000"]
        with program(server, port, Path(folder)), _programs(command, port) as programs:
            yield ByProgram(versions, {"server": listeners(port)}, None, programs, arrays=True)


@contextlib.contextmanager
def on_redis(command: list[str], version: str, *, arrays: bool) -> Iterator[Contestant]:
    """A library that keeps its jobs in a Redis, without a server of its own."""
    with own_store() as (_, port), _programs(command, port) as programs:
        store = StoreView(f"redis://127.0.0.1:{port}")
        yield ByProgram(version, _redis(store), store, programs, arrays=arrays)


def bullmq() -> contextlib.AbstractContextManager[Contestant]:
    """BullMQ, in Node."""
    return on_redis(*installed.bullmq(), arrays=True)


def asynq() -> contextlib.AbstractContextManager[Contestant]:
    """asynq, in Go. Its client has no way to push many tasks at once."""
    return on_redis(*installed.in_go("github.com/hibiken/asynq", "asynq"), arrays=False)


def arq() -> contextlib.AbstractContextManager[Contestant]:
    """arq, in Python."""
    return on_redis(*installed.arq(), arrays=False)


@contextlib.contextmanager
def _programs(command: Sequence[str], port: int) -> Iterator[Programs]:
    whole = [*command, str(port)]
    with Program(whole) as pusher, Program(whole) as worker:
        yield pusher, worker


def _redis(store: StoreView) -> Pids:
    return {"Redis": [int(store.info("process_id"))]}
