"""The page for those who come from other task queues: its programs, ours on a real server."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from contextlib import closing as closed
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import pytest

from delayqueue import Client
from delayqueue.testing import Queue
from tests.processes import REPOSITORY
from tests.waiting import until

from .markdown import read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.processes import QueueServer

PAGE: Final = "docs/howto/task-queues.md"
PROGRAMS: Final = REPOSITORY / "examples" / "task-queues"
THEIRS: Final = sorted(PROGRAMS.glob("closing_*.py"))
PEERS_PYTHON: Final = REPOSITORY / "build" / "peers" / "bin" / "python"  # bench/README.md


@pytest.fixture
def closing(server: QueueServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Our program, at a server of the tests."""
    monkeypatch.syspath_prepend(str(PROGRAMS))
    monkeypatch.setenv("DELAYQUEUE_URL", server.url)
    program = import_module("closing")
    yield program
    program.worker.client.close()
    del sys.modules["closing"]


async def test_the_ported_program_closes_orders_unless_they_are_paid(
    closing: Any, server: QueueServer
) -> None:
    for order in ("1001", "1002", "none"):
        await asyncio.to_thread(closing.place, order)
    await asyncio.to_thread(closing.paid, "1002")
    stop = asyncio.Event()
    working = asyncio.create_task(closing.worker.work(stop))
    with closed(Client(server.url)) as queue:
        jobs = queue.get_many(["close-1001", "close-1002", "close-none"])
        assert [job and job.state for job in jobs] == ["delayed", "cancelled", "delayed"]
        outcomes = queue.kick_many(["close-1001", "close-none"])
        assert [outcome.code for outcome in outcomes] == [0, 0]
        await until(lambda: closing.outcome("1001") == "closed order 1001: not paid")
        await until(lambda: (job := queue.get("close-none")) is not None and job.state == "buried")
        await until(lambda: [each.cron for each in queue.schedules("report")] != [])
        queue.unschedule("task:report")
    stop.set()
    await working


@pytest.mark.parametrize("program", THEIRS, ids=lambda path: path.stem)
def test_their_programs_are_sound(program: Path) -> None:
    compile(program.read_text("utf-8"), str(program), "exec")
    if not PEERS_PYTHON.exists():
        pytest.skip("the other task queues are not installed: bench/README.md")
    imported = subprocess.run(
        [PEERS_PYTHON, "-c", f"import {program.stem}"],
        cwd=PROGRAMS,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert imported.returncode == 0, imported.stderr


@pytest.mark.parametrize("program", [PROGRAMS / "closing.py", *THEIRS], ids=lambda path: path.stem)
def test_the_page_says_how_long_each_program_is(program: Path) -> None:
    [told] = re.findall(rf"/{program.name}\) \| (\d+) \|", read(PAGE))
    assert int(told) == len(program.read_text("utf-8").splitlines())


def test_the_app_of_celery_that_the_page_shows_keeps_its_tasks() -> None:
    pytest.importorskip("celery")
    text = (PROGRAMS / "keeping.py").read_text("utf-8").replace("redis://localhost", "memory://")

    program: dict[str, Any] = {"__name__": "keeping"}
    exec(compile(text, "keeping.py", "exec"), program)
    queue = program["relay"].client = Queue(program["relay"])
    program["place"]("1001")
    program["place"]("1002")
    program["paid"]("1002")
    assert [ran.job.id for ran in queue.advance("30m")] == ["close-1001"]
