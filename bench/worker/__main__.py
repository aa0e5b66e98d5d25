"""python -m bench.worker: our Worker and others, the same work on the same Redis; see bench/README.md."""

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.processes import BenchError, free_port, program
from bench.report import Findings, as_json, table
from bench.target import StoreView, own_server, redis_command
from bench.worker.contest import REPOSITORY, Round, Side, ours, peers

PEERS: Final = ("arq", "dramatiq", "celery", "rq")
PEERS_PYTHON: Final = "build/peers/bin/python"
OUR_DATABASE: Final = 1  # the server's default; the peers' follow


def main() -> int:
    """Measure, print the table; exit code 1 if a measure failed."""
    asked = _parser().parse_args()
    if asked.jobs < 4 or asked.probes < 2:
        print("bench.worker: at least 4 jobs and 2 probes", file=sys.stderr)
        return 1
    try:
        findings = measure(asked)
    except BenchError as error:
        print(f"bench.worker: {error}", file=sys.stderr)
        return 1
    print(table(findings))
    if asked.json:
        asked.json.write_text(json.dumps(as_json(findings), indent=1) + "\n")
    return 1 if findings.failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.worker", description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000, help="of each drain")
    parser.add_argument("--probes", type=int, default=100, help="single jobs for an idle worker")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--enqueue", action="store_true", help="measure only that")
    parser.add_argument(
        "--peers",
        metavar="PYTHON",
        default=str(REPOSITORY / PEERS_PYTHON),
        help=f"an interpreter that has {', '.join(PEERS)}; default: {PEERS_PYTHON}",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    return parser


def measure(asked: argparse.Namespace) -> Findings:
    """All rounds, the sides in turn, so that noise hits all alike. Raises BenchError."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        sides = stack.enter_context(_sides(folder, asked.peers))
        if asked.enqueue:
            sides = [side for side in sides if not side.tuned]
        print(f"versions: {', '.join(f'{side.name} {side.version}' for side in sides)}")
        findings = Findings([side.name for side in sides])
        for _ in range(asked.rounds):
            for side in sides:
                _measure(Round(side, folder, asked.jobs, asked.probes), findings, asked.enqueue)
    return findings


@contextlib.contextmanager
def _sides(folder: Path, python: str) -> Iterator[list[Side]]:
    port, store_port = free_port(), free_port()
    with (
        program(redis_command(store_port), store_port, folder),
        own_server(folder, port, store_port, {"redis.db": str(OUR_DATABASE)}),
    ):
        sides = [ours(port)]
        for database, package in enumerate(PEERS, OUR_DATABASE + 1):
            found = peers(package, python, store_port, database)
            if not found:
                print(f"{package}: not installed for {python}; left out", file=sys.stderr)
            sides += found
        yield sides


def _measure(task: Round, findings: Findings, enqueue_only: bool) -> None:
    side = task.side
    steps = [task.idle, task.enqueue, task.drain]
    for step in [task.enqueue] if enqueue_only or not side.works else steps:
        print(f"{step.__name__}: {side.name}", file=sys.stderr, flush=True)
        findings.add(step.__name__, side.name, step())
    if side.url.startswith("redis:"):  # what a cut-off has left
        StoreView(side.url).flush()


if __name__ == "__main__":
    sys.exit(main())
