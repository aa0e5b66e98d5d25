"""The sides, and what each has to do: find an idle worker, enqueue, and drain."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.measure import Figure, Outcome, per_second
from bench.processes import BenchError, running, wait_until
from bench.worker.side import CUT_OFF_S, PAUSE_S
from delayqueue import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY: Final = Path(__file__).parent.parent.parent
START_S: Final = 15  # for a worker, until its first job
PROGRAM_S: Final = 120  # for any program, until its end


@dataclass(frozen=True, slots=True)
class Side:
    """A client and a worker: the program `module`, run by `python`; `enqueues` are its ways to enqueue, by figure."""

    name: str
    version: str
    module: str
    python: str
    url: str
    enqueues: dict[str, str]
    tuned: bool = False
    works: bool = True  # False: only its enqueueing is measured


@dataclass(frozen=True, slots=True)
class Round:
    """What a side has to do; its programs write into `folder`."""

    side: Side
    folder: Path
    jobs: int
    probes: int

    def idle(self) -> Outcome:
        """From enqueueing a single job until its handler starts, while there is no other."""
        with self._program("work", self.probes) as worker:
            self._probe(1)
            worker.says("late_ms", 1, START_S)  # it has started
            self._probe(self.probes)
            late_ms = worker.says("late_ms", 1 + self.probes, START_S)[1:]
        cuts = statistics.quantiles(late_ms, n=100, method="inclusive")
        return Outcome({"p50": Figure(cuts[49], "ms"), "p99": Figure(cuts[98], "ms")})

    def _probe(self, jobs: int) -> None:
        with self._program("probe", jobs) as probe:
            probe.end(PROGRAM_S + jobs * max(PAUSE_S))

    def enqueue(self) -> Outcome:
        """One program enqueues all jobs that will be drained, an equal part in each way.

        Beside each rate is the processor time of that program.
        """
        figures = {}
        part, rest = divmod(self.jobs, len(self.side.enqueues))
        for number, (figure, role) in enumerate(self.side.enqueues.items()):
            with self._program(role, part + (rest if number == 0 else 0)) as program:
                program.end(PROGRAM_S)
                figures[figure] = per_second(program.says("enqueued_per_s", 1, 0)[0])
                cpu_us = program.says("enqueue_cpu_us", 1, 0)[0]
                figures[f"{figure}, client"] = Figure(cpu_us, "µs")
        return Outcome(figures)

    def drain(self) -> Outcome:
        """One worker handles them, from its first job to the last, or as many as it can until the cut-off."""
        with self._program("work", self.jobs) as worker:
            rates = worker.says("drained_per_s", 1, START_S + 2 * CUT_OFF_S)
        return Outcome({"rate": per_second(rates[0])})

    @contextlib.contextmanager
    def _program(self, role: str, jobs: int) -> Iterator[_Program]:
        side = self.side
        command = [side.python, "-m", side.module, role, side.url, str(jobs)]
        command += ["--tuned"] if side.tuned else []
        log_path = self.folder / f"{role}.log"
        log_path.unlink(missing_ok=True)
        environ = os.environ | {"PYTHONPATH": str(REPOSITORY)}
        with running(command, log_path, environ) as child:
            yield _Program(f"{side.name}: {role}", child, log_path)


@dataclass(frozen=True, slots=True)
class _Program:
    """A running program that reports its figures in its output."""

    name: str
    child: subprocess.Popen[bytes]
    log_path: Path

    def says(self, what: str, times: int, within_s: float) -> list[float]:
        """What it has printed, once it has printed it `times` times. Raises BenchError, also if it ends before that."""
        found: list[float] = []

        def said() -> bool:
            ended = self.child.poll() is not None  # before reading: what it printed last counts
            found[:] = self._values(what)
            if ended and len(found) < times:
                raise BenchError(f"{self.name} ended: {self.log_path.read_text()[-400:]}")
            return len(found) >= times

        wait_until(said, f"{self.name}: {what}", within_s)
        return found

    def end(self, within_s: float) -> None:
        """Wait for its end. Raises BenchError if it fails."""
        wait_until(lambda: self.child.poll() is not None, self.name, within_s)
        if self.child.returncode:
            raise BenchError(f"{self.name} failed: {self.log_path.read_text()[-400:]}")

    def _values(self, what: str) -> list[float]:
        lines = self.log_path.read_text().splitlines(keepends=True)
        told = [json.loads(line) for line in lines if line.startswith('["') and line.endswith("\n")]
        return [value for name, value in told if name == what]


def version(python: str, package: str) -> str | None:
    """The version of the package that this interpreter has, None if it has none."""
    told = f"import {package}; from importlib.metadata import version; print(version('{package}'))"
    with contextlib.suppress(OSError):
        asked = subprocess.run([python, "-c", told], check=False, capture_output=True, text=True)
        return asked.stdout.strip() or None
    return None


def ours(server_port: int) -> Side:
    """Our client and worker, on our server."""
    enqueues = {
        "one by one": "push",
        "one by one, asyncio": "enqueue",
        "100 at once": "at_once",
        "arrays of 100": "batches",
    }
    url = f"http://127.0.0.1:{server_port}"
    return Side("ours", __version__, "bench.worker.ours", sys.executable, url, enqueues)


def peers(package: str, python: str, store_port: int, database: int) -> list[Side]:
    """A peer as installed, and tuned; none if it is not installed. Of RQ, only its enqueueing."""
    found = version(python, package)
    if not found:
        return []
    url = f"redis://127.0.0.1:{store_port}/{database}"
    ways = {"one by one": "enqueue"} | ({"100 at once": "at_once"} if package == "arq" else {})
    works = package != "rq"
    plain = Side(package, found, f"bench.worker.with_{package}", python, url, ways, works=works)
    if not works:
        return [plain]
    return [plain, replace(plain, name=f"{package} tuned", tuned=True)]
