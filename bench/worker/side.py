"""The common part of every side's program. It runs beside the peers' packages: standard library only."""

import argparse
import itertools
import json
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

QUEUE: Final = "bench"
CONCURRENCY: Final = 10
CUT_OFF_S: Final = 15  # of a drain; its rate until then counts
# between the jobs that find an idle worker: they hit any phase of a poll every half second
PAUSE_S: Final = (0.05, 0.55)


@dataclass(frozen=True, slots=True)
class Work:
    """What a worker does until SIGTERM: call `handle` with each body, `concurrency` at a time."""

    url: str
    tuned: bool
    handle: Callable[[str], None]
    concurrency: int = CONCURRENCY


Send = Callable[[str, Iterable[str]], None]


def play(work: Callable[[Work], None], **senders: Send) -> None:
    """Do what the command line says: `work`, or one of the `senders`, which enqueue a job for each body at a URL."""
    parser = argparse.ArgumentParser(description="one side of python -m bench.worker")
    parser.add_argument("role", choices=["work", "probe", *senders])
    parser.add_argument("url")
    parser.add_argument("jobs", type=int)
    parser.add_argument("--tuned", action="store_true")
    asked = parser.parse_args()
    if asked.role == "work":
        work(Work(asked.url, asked.tuned, Tally(asked.jobs).handle))
    elif asked.role == "probe":
        senders["enqueue"](asked.url, _moments(asked.jobs))
    else:
        senders[asked.role](asked.url, _timed(asked.jobs))


class Tally:
    """What happened to the handlers: reports how fast `jobs` empty bodies came, and how late each other one."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._numbers = itertools.count(1)  # threads may share it
        self._began_ns = 0
        self._told = False

    def handle(self, body: str) -> None:
        """Do nothing, as a job."""
        now_ns = time.monotonic_ns()
        if body:
            _say("late_ms", (now_ns - int(body)) / 1e6)
            return
        number = next(self._numbers)
        if number == 1:
            self._began_ns = now_ns
        spent_s = (now_ns - self._began_ns) / 1e9
        if not self._told and (number == self._jobs or spent_s > CUT_OFF_S):
            self._told = True
            _say("drained_per_s", (number - 1) / spent_s)


def _moments(jobs: int) -> Iterator[str]:
    """Bodies that tell when they were asked for, after a pause each."""
    for _ in range(jobs):
        time.sleep(random.uniform(*PAUSE_S))
        yield str(time.monotonic_ns())


def _timed(jobs: int) -> Iterator[str]:
    """Empty bodies; reports how fast they were asked for, and at what processor time of this program."""
    began_s, used_s = time.monotonic(), time.process_time()
    yield from itertools.repeat("", jobs)
    _say("enqueued_per_s", jobs / (time.monotonic() - began_s))
    _say("enqueue_cpu_us", 1e6 * (time.process_time() - used_s) / jobs)


def _say(what: str, value: float) -> None:
    # in one piece, because threads may print at once
    sys.stdout.write(json.dumps([what, value]) + "\n")
    sys.stdout.flush()
