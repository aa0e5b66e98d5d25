"""python -m bench.peers: this server beside what people would take instead, in one run. See bench/README.md."""

import argparse
import contextlib
import json
import math
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from bench.load import LARGE_BATCH
from bench.measure import SLEEP_FROM_S, SLEEP_TO_S, Figure, Figures, per_second
from bench.peers import contestants
from bench.peers.contestants import Contestant, Span
from bench.processes import BenchError, cpu_seconds, raise_file_limit
from bench.report import Findings, as_json, table

ARRAYS_AT_ONCE: Final = 8
SETTLE_S: Final = 1.0
PACE: Final = 500  # jobs a second
SOONEST_S, LATEST_S = 1, 5
SPARE: Final = 1.5  # times as long as the jobs of the burst should take to push
SPARE_S: Final = 4

Contest = Callable[[], contextlib.AbstractContextManager[Contestant]]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many jobs of each load."""

    warm_up: int = 3_000
    pushes: int = 30_000
    arrays: int = 50_000
    works: int = 20_000
    paced: int = 5_000
    burst: int = 60_000


QUICK: Final = Sizes(500, 2_000, 5_000, 2_000, 1_000, 6_000)


def main() -> int:
    """Measure all that can be had, print the table; exit code 1 if a measure failed."""
    asked = _parser().parse_args()
    raise_file_limit()
    # what we started is ended by the `with` blocks on the way out
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("bench.peers: terminated"))
    contests = _contests(asked.ouqiang)
    names = asked.names or list(contests)
    if unknown := sorted(set(names) - set(contests)):
        print(
            f"bench.peers: no {', '.join(unknown)}; there are {', '.join(contests)}",
            file=sys.stderr,
        )
        return 2
    findings = Findings(names)
    for _ in range(asked.rounds):
        for name in list(findings.targets):
            print(f"{name} …", file=sys.stderr, flush=True)
            _compete(name, contests[name], QUICK if asked.quick else Sizes(), findings)
    print(table(findings, ratios=False))
    if asked.json:
        asked.json.write_text(json.dumps(as_json(findings), indent=1) + "\n")
    return 1 if findings.failures else 0


def _parser() -> argparse.ArgumentParser:
    names = list(_contests(None))
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}; default: all"
    )
    parser.add_argument("--ouqiang", type=Path, metavar="PROGRAM", help="ouqiang/delay-queue")
    parser.add_argument("--rounds", type=int, default=1, metavar="N")
    parser.add_argument("--quick", action="store_true", help="rough figures in little time")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    return parser


def _contests(ouqiang: Path | None) -> dict[str, Contest]:
    return {
        "ours": contestants.ours,
        "ours-python": contestants.ours_in_python,
        "ouqiang": partial(contestants.original, ouqiang),
        "bullmq": contestants.bullmq,
        "asynq": contestants.asynq,
        "arq": contestants.arq,
        "beanstalkd": contestants.beanstalkd,
        "ours-beanstalk": contestants.ours_by_beanstalk,
    }


def _compete(name: str, contest: Contest, sizes: Sizes, findings: Findings) -> None:
    """A round of one contestant; without it if it cannot be had."""
    with contextlib.ExitStack() as stack:
        try:
            peer = stack.enter_context(contest())
        except BenchError as error:
            findings.leave_out(name, str(error))
            return
        findings.versions[name] = peer.version
        try:
            for measure, figures in _measured(peer, sizes):
                findings.add(measure, name, figures)
        except BenchError as error:
            findings.fail("peers", name, str(error))


def _measured(peer: Contestant, sizes: Sizes) -> Iterator[tuple[str, Figures]]:
    """The name and the figures of each measure. Raises BenchError."""
    work(peer, sizes.warm_up)
    asleep = {"from_s": SLEEP_FROM_S, "to_s": SLEEP_TO_S}
    before = _settled(peer)
    pushed = costs(peer, sizes.pushes, lambda: peer.push(sizes.pushes, **asleep))
    yield "push", pushed
    rate, jobs = pushed["jobs"].value, sizes.pushes
    how: dict[str, float] = {}
    if peer.arrays:
        how = {"batch": LARGE_BATCH, "at_once": ARRAYS_AT_ONCE}
        arrays = costs(peer, sizes.arrays, lambda: peer.push(sizes.arrays, **asleep, **how))
        yield "arrays", arrays
        rate, jobs = arrays["jobs"].value, jobs + sizes.arrays
    yield "memory", {"a sleeping job": Figure((_settled(peer) - before) / jobs, "bytes")}
    yield "work", costs(peer, sizes.works, lambda: work(peer, sizes.works))
    yield "lateness", lateness(peer, sizes.paced)
    yield "burst", burst(peer, sizes.burst, rate, how)


def costs(peer: Contestant, jobs: int, act: Callable[[], Span]) -> Figures:
    """The rate, and the processor time of each part for a job."""
    before_s = _spent_s(peer)
    span = act()
    took_s = span.ended_at - span.began_at
    spent_us = {
        part: 1e6 * (after - before_s[part]) / jobs for part, after in _spent_s(peer).items()
    }
    spent_us["all"] = sum(spent_us.values())
    figures = {part: Figure(us, "µs of processor a job") for part, us in spent_us.items()}
    return {"jobs": per_second(jobs / took_s)} | figures


def _spent_s(peer: Contestant) -> dict[str, float]:
    parts = {part: cpu_seconds(pids) for part, pids in peer.pids.items()}
    return parts | {"programs": peer.program_s()}


def _settled(peer: Contestant) -> int:
    time.sleep(SETTLE_S)
    return peer.memory()


def work(peer: Contestant, jobs: int) -> Span:
    """Push jobs one by one while a worker handles them, until the last is done."""
    peer.begin()
    with peer.working(jobs) as worked:
        pushed = peer.push(jobs, from_s=peer.least_s, to_s=peer.least_s)
        return Span(pushed.began_at, worked().ended_at)


def lateness(peer: Contestant, jobs: int) -> Figures:
    """How late jobs reach a worker that has little to do."""
    peer.begin()
    with peer.working(jobs) as worked:
        peer.push(jobs, rate=PACE, from_s=SOONEST_S, to_s=LATEST_S)
        names = ("p50", "p99", "max")
        return {name: Figure(ms, "ms") for name, ms in zip(names, worked().late_ms, strict=True)}


def burst(peer: Contestant, jobs: int, rate: float, how: dict[str, float]) -> Figures:
    """Jobs that are all due at one moment. They are in before it, if need be at a second attempt."""
    foreseen_s = SPARE * jobs / rate + SPARE_S
    while True:
        peer.begin()
        due = math.ceil(time.time() + foreseen_s)
        peer.push(jobs, due=due, **how)
        is_in_time = time.time() < due - SETTLE_S
        with peer.working(jobs) as worked:
            half_ms, _, last_ms = worked().late_ms
        if is_in_time:
            break
        foreseen_s *= 2
    return {
        "half is with a worker after": Figure(half_ms / 1000, "s"),
        "all are with a worker after": Figure(last_ms / 1000, "s"),
    }


if __name__ == "__main__":
    sys.exit(main())
