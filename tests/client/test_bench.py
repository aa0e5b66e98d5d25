"""The benchmarks of workers and of beanstalkd's protocol: a tiny run of each, against real processes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.beanstalk import beanstalk
from bench.measure import Scale
from bench.target import parse_target
from bench.worker.side import CUT_OFF_S, Tally
from delayqueue import __version__
from tests.docs.test_orders import needs
from tests.processes import REPOSITORY


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a benchmark to its end, which must be a good one."""
    ended = subprocess.run(
        [sys.executable, "-m", f"bench.{name}", *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended


@pytest.mark.seldom
def test_our_worker_is_measured_where_no_peer_is_installed(tmp_path: Path) -> None:
    found = tmp_path / "figures.json"
    small = ["--jobs", "40", "--probes", "2", "--rounds", "1"]
    ended = run("worker", *small, "--peers", "/none", "--json", str(found))
    assert f"versions: ours {__version__}" in ended.stdout.splitlines()
    for peer in ("arq", "dramatiq", "celery", "rq"):
        assert f"{peer}: not installed for /none; left out" in ended.stderr.splitlines()
    figures = {
        (measure, figure): told["rounds"]
        for measure, by_target in json.loads(found.read_text())["measures"].items()
        for figure, told in by_target["ours"]["figures"].items()
    }
    assert set(figures) == {
        ("idle", "p50"),
        ("idle", "p99"),
        *(
            ("enqueue", way + figure)
            for way in ("one by one", "one by one, asyncio", "100 at once", "arrays of 100")
            for figure in ("", ", client")
        ),
        ("drain", "rate"),
    }
    assert all(len(rounds) == 1 and rounds[0] > 0 for rounds in figures.values())


@pytest.mark.seldom
@pytest.mark.parametrize("bench", [("wrappings", "--calls", "10"), ("history",)])
def test_scripts_are_measured_without_a_server(bench: tuple[str, ...]) -> None:
    assert len(run(*bench).stdout.splitlines()) >= len(bench)


@pytest.mark.seldom
def test_a_single_push_is_measured_in_every_way() -> None:
    ended = run("single", "--pushes", "200", "--rounds", "1")
    head, _, *rows = [line.strip("| ").split(" | ") for line in ended.stdout.splitlines()]
    assert head == ["µs a push", "median", "shortest", "client", "server", "Redis"]
    assert len(rows) == 4
    for _, median, shortest, *_ in rows:
        assert int(median) >= int(shortest) > 0


@pytest.mark.parametrize(
    ("at_s", "rate"),
    [
        ([0, 1, 2, 3], 1.0),  # all four
        ([0, 1, CUT_OFF_S + 1], 2 / (CUT_OFF_S + 1)),  # what was done by the deadline
    ],
)
def test_the_rate_is_that_from_the_first_job_on(
    at_s: list[int],
    rate: float,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tally = Tally(4)
    for each_s in at_s:
        monkeypatch.setattr("time.monotonic_ns", lambda now_ns=each_s * 10**9: now_ns)
        tally.handle("")
    what, value = json.loads(capsys.readouterr().out)
    assert what == "drained_per_s"
    assert value == pytest.approx(rate)


@pytest.mark.seldom
def test_beanstalkd_is_measured_with_all_its_loads() -> None:
    needs("beanstalkd", [])
    with parse_target("peer=beanstalkd", {}, flush=False).running() as server:
        figures = beanstalk(server, Scale(seconds=1, pop_jobs=200)).figures
    rates = {name: figure.value for name, figure in figures.items() if figure.unit == "jobs/s"}
    assert set(rates) == {"put", "reserve, delete", "put, pipelined"}
    assert min(rates.values()) > 0
