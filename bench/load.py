"""Runs wrk with a script of bench/lua and reads the line of figures that it prints."""

import contextlib
import json
import os
import secrets
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.processes import BenchError
from bench.target import Server

SCRIPTS = Path(__file__).with_name("lua")
MARK = "BENCH "
END_S = 30.0  # for wrk to report, on top of its time
LONGEST_S = 3600  # for a load that ends with its count
LARGE_BATCH = 100  # jobs a request

Curve = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Tally:
    """What a load did. `late_ms`: lateness in milliseconds by share of the jobs in percent.

    It began with the first request, and ended with the last job; both are Unix times.
    """

    jobs: int
    began_at: float
    ended_at: float
    answer_ms_p99: float
    late_ms: Curve

    @property
    def rate(self) -> float:
        """Jobs per second."""
        took_s = self.ended_at - self.began_at
        return self.jobs / took_s if took_s else 0.0

    def late(self, share: float) -> float:
        """Lateness of the job at this percentile of the curve, milliseconds."""
        return dict(self.late_ms)[share]


class Load:
    """A running wrk."""

    def __init__(self, wrk: subprocess.Popen[str], what: str, limit_s: float) -> None:
        self._wrk = wrk
        self._what = what
        self._limit_s = limit_s

    def result(self) -> Tally:
        """Wait for its end. Raises BenchError if answers were refused or connections broke."""
        try:
            output, _ = self._wrk.communicate(timeout=self._limit_s)
        except subprocess.TimeoutExpired:
            raise BenchError(f"{self._what}: no end within {self._limit_s:.0f} s") from None
        line = next((line for line in output.splitlines() if line.startswith(MARK)), None)
        if line is None:
            raise BenchError(f"{self._what}: {output.strip()[-400:]}")
        found = json.loads(line.removeprefix(MARK))
        refused, broken = found.pop("refused"), found.pop("broken")
        if refused or broken:
            raise BenchError(f"{self._what}: {refused} refused, {broken} broken connections")
        return Tally(**found)


@contextlib.contextmanager
def loading(
    script: str,
    server: Server,
    topic: str,
    *,
    connections: int,
    seconds: int = LONGEST_S,
    threads: int = 1,
    **settings: float,
) -> Iterator[Load]:
    """Run a script during the block, at most. `settings` are its variables."""
    environ = os.environ | {name.upper(): f"{value:.0f}" for name, value in settings.items()}
    environ |= {"TOPIC": topic, "PROTOCOL": server.protocol, "RUN": secrets.token_hex(3)}
    command = ["wrk", f"-t{threads}", f"-c{connections}", f"-d{seconds}", "-s", script, server.url]
    with subprocess.Popen(
        command,
        cwd=SCRIPTS,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as wrk:
        try:
            yield Load(wrk, f"{script} on {server.url}", seconds + END_S)
        finally:
            wrk.kill()


def run(script: str, server: Server, topic: str, **options: Any) -> Tally:
    """Run a script to its end; `options` as for `loading`."""
    with loading(script, server, topic, **options) as load:
        return load.result()


def fill(server: Server, topic: str, jobs: int, **settings: float) -> Tally:
    """Push about `jobs` jobs as fast as the server takes them."""
    return run("push.lua", server, topic, connections=32, count=jobs, batch=LARGE_BATCH, **settings)
