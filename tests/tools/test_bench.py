"""The benchmarks: a tiny run of what compares this server with others, and who is left out of that."""

import json
import subprocess
from pathlib import Path

import pytest

from bench.peers import installed
from bench.processes import BenchError
from bench.target import parse_target
from tests.processes import python

COSTS = {"jobs", "server", "Redis", "programs", "all"}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Compare, to a good end."""
    ended = python("-m", "bench.peers", *arguments)
    assert ended.returncode == 0, ended.stderr
    return ended


@pytest.mark.seldom
def test_our_client_and_worker_are_measured_with_all_loads(tmp_path: Path) -> None:
    written = tmp_path / "figures.json"
    run("ours-python", "--quick", "--rounds", "1", "--json", str(written))
    found = json.loads(written.read_text())
    figures = {measure: each["ours-python"] for measure, each in found["measures"].items()}
    assert {measure: set(each) for measure, each in figures.items()} == {
        "push": COSTS,
        "arrays": COSTS,
        "memory": {"a sleeping job"},
        "work": COSTS,
        "lateness": {"p50", "p99", "max"},
        "burst": {"half is with a worker after", "all are with a worker after"},
    }
    assert all(told["median"] > 0 for each in figures.values() for told in each.values())
    assert "AsyncClient" in found["versions"]["ours-python"]


def test_who_cannot_be_had_is_left_out_with_a_line() -> None:
    ended = run("ouqiang")
    assert "ouqiang: left out: name its program: --ouqiang PROGRAM" in ended.stdout.splitlines()


def test_a_peer_whose_tool_is_missing_names_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed, "CACHE", tmp_path / "cache")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BenchError, match="npm is not installed"):
        installed.bullmq()
    with pytest.raises(BenchError, match="go is not installed"):
        installed.in_go("github.com/hibiken/asynq", "asynq")


def test_a_target_that_is_no_program_is_refused() -> None:
    with pytest.raises(BenchError, match="must be self"):
        parse_target("original=/none")
