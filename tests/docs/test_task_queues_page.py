"""The page for those who come from other task queues: its programs, ours on a real server."""

import asyncio
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import closing as closed
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from delayqueue import Client
from delayqueue.testing import Queue
from tests.client.conftest import at_work
from tests.partner import Answer, Partner
from tests.processes import REPOSITORY, QueueServer
from tests.waiting import until

from .markdown import ended, read

PAGE: Final = "docs/howto/task-queues.md"
PROGRAMS: Final = REPOSITORY / "examples" / "task-queues"
THEIRS: Final = sorted(PROGRAMS.glob("closing_*.py"))
TUTORIALS: Final = PROGRAMS / "tutorials"
WORDS: Final = "four words and these"
PEERS_PYTHON: Final = REPOSITORY / "build" / "peers" / "bin" / "python"  # CONTRIBUTING.md


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
        pytest.skip("the other task queues are not installed: CONTRIBUTING.md")
    imported = ended([PEERS_PYTHON, "-c", f"import {program.stem}"], folder=PROGRAMS)
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


@pytest.fixture
def tutorial(
    server: QueueServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], Any]]:
    """Imports our port of a tutorial, at a server of the tests."""
    monkeypatch.syspath_prepend(str(TUTORIALS))
    monkeypatch.setenv("DELAYQUEUE_URL", server.url)
    imported = []

    def tutorial(name: str) -> Any:
        imported.append(name)
        return import_module(name)

    yield tutorial
    for name in imported:
        sys.modules.pop(name).worker.client.close()


@pytest.fixture
def page() -> Iterator[str]:
    """The address of a page."""
    with Partner(Answer(200, WORDS)) as site:
        yield f"{site.url}/page"


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[[], list[str]]:
    """What was printed up to now."""
    lines: list[str] = []

    def printed() -> list[str]:
        lines.extend(capsys.readouterr().out.splitlines())
        return lines

    return printed


async def test_the_first_steps_of_celery_add(
    tutorial: Callable[[str], Any], printed: Callable[[], list[str]]
) -> None:
    program = tutorial("celery_first_steps")
    async with at_work(program.worker):
        await asyncio.to_thread(program.main)
    assert printed() == ["8"]


async def test_the_guide_of_dramatiq_counts_words_and_an_address_that_is_none_is_a_dead_letter(
    tutorial: Callable[[str], Any], printed: Callable[[], list[str]], page: str, server: QueueServer
) -> None:
    program = tutorial("dramatiq_guide")
    async with at_work(program.worker):
        await asyncio.to_thread(program.main, page, f"{page}/2")
        with closed(Client(server.url)) as queue:
            assert await asyncio.to_thread(queue.kick_topic, "count-words", state="delayed") == 1
            await until(lambda: len(printed()) == 3)
            await until(lambda: queue.topics("count-words")[0].buried == 1)
            [group] = queue.buried("count-words").groups
            assert group.reason.startswith("ValueError: unknown url type")
    assert sorted(printed()) == [f"4 words at {each}" for each in (page, page, f"{page}/2")]


async def test_the_demo_of_arq_downloads_with_one_session(
    tutorial: Callable[[str], Any], printed: Callable[[], list[str]], page: str
) -> None:
    program = tutorial("arq_demo")
    async with at_work(program.worker):
        await program.main(page, f"{page}/2")
        await until(lambda: len(printed()) == 2)
    assert set(printed()) == {f"{each}: {WORDS}..." for each in (page, f"{page}/2")}


async def test_the_overview_of_rq_counts_words_and_reads_the_result(
    tutorial: Callable[[str], Any], printed: Callable[[], list[str]], page: str
) -> None:
    program = tutorial("rq_overview")
    async with at_work(program.worker):
        await asyncio.to_thread(program.main, page)
    assert printed() == ["4"]


async def test_the_guide_of_huey_adds_later_tries_again_and_runs_every_three_minutes(
    tutorial: Callable[[str], Any],
    printed: Callable[[], list[str]],
    server: QueueServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = tutorial("huey_guide")
    outcomes = [1, 0]
    monkeypatch.setattr(program, "random", SimpleNamespace(randint=lambda *_: outcomes.pop()))
    with closed(Client(server.url)) as queue:

        def has_delayed(topic: str) -> bool:
            return any(counts.delayed for counts in queue.topics(topic))

        async with at_work(program.worker):
            running = asyncio.create_task(asyncio.to_thread(program.main))
            await until(lambda: has_delayed("sum"))
            queue.kick_topic("sum", state="delayed")
            await running
            await until(lambda: has_delayed("flaky"))  # it has failed
            queue.kick_topic("flaky", state="delayed")
            await until(lambda: not outcomes)
            await until(lambda: [each.every for each in queue.schedules("three-minutes")] == [180])
            queue.run_schedule("task:three-minutes")
            await until(lambda: len(printed()) == 3)
            queue.unschedule("task:three-minutes")
    assert printed() == ["3", "7", "three minutes are over"]
