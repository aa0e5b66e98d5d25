"""What a type checker tells users of the clients, the worker and the test kit.

mypy and pyright read this file, too, so it must satisfy both of them.
"""

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Final, assert_type

import pytest

from delayqueue import AsyncClient, Client, Worker
from delayqueue.client import (
    JobDetails,
    Outcome,
    Page,
    ReservedJob,
    Schedule,
    Stats,
    Subscriber,
)
from delayqueue.testing import Queue
from tests.processes import REPOSITORY, QueueServer

PUBLIC: Final = tuple(
    f"delayqueue.{name}." for name in ("answers", "client", "errors", "testing", "worker")
)
CHECK_S: Final = 300.0


def test_pyright_finds_nothing_wrong_with_the_programs_that_users_copy() -> None:
    """Those that pyproject.toml names. Not in `make lint`: it brings a Node of 60 MB."""
    pytest.importorskip("basedpyright")
    program = Path(sys.executable).with_name("basedpyright")
    checked = subprocess.run(
        [program, "--pythonpath", sys.executable],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        timeout=CHECK_S,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout.decode()


@pytest.mark.seldom
def test_pyright_knows_the_type_of_everything_that_can_be_imported() -> None:
    pytest.importorskip("basedpyright")
    checked = subprocess.run(
        [
            *(Path(sys.executable).with_name("basedpyright"), "--pythonpath", sys.executable),
            *("--verifytypes", "delayqueue", "--ignoreexternal", "--outputjson"),
        ],
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        timeout=CHECK_S,
        check=False,  # it speaks of the server's modules, too
    )
    symbols = json.loads(checked.stdout)["typeCompleteness"]["symbols"]
    ours = [
        symbol
        for symbol in symbols
        if symbol["name"].startswith(PUBLIC) and not symbol["name"].endswith(".log")
    ]
    assert "delayqueue.client.pushes.PushVerbs.push" in {symbol["name"] for symbol in ours}
    assert [
        symbol["name"] for symbol in ours if symbol["isTypeAmbiguous"] or not symbol["isTypeKnown"]
    ] == []


def test_jedi_completes_a_program_that_was_ported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What notebooks, and editors without pyright, complete with."""
    jedi = pytest.importorskip("jedi")
    # else it reads files that another run of the tests has half written
    monkeypatch.setattr(jedi.settings, "cache_directory", str(tmp_path))
    program = (REPOSITORY / "examples" / "task-queues" / "closing.py").read_text("utf-8")
    project = jedi.Project(REPOSITORY)
    completed = {}
    for unfinished in ("close.", "worker.", "worker.client."):
        script = jedi.Script(f"{program}\n{unfinished}", project=project)
        completed[unfinished] = {completion.name for completion in script.complete()}
    assert completed["close."] >= {"push", "push_many", "push_async", "cancel", "job"}
    assert completed["worker."] >= {"task", "on", "run", "client"}
    assert completed["worker.client."] >= {"push", "delete", "get"}


def test_the_verbs_of_a_client_give_what_their_types_say(server: QueueServer, topic: str) -> None:
    with Client(server.url) as queue:
        assert_type(queue.push(topic, if_exists="keep", delay=60), str)
        assert_type(queue.list_jobs(topic, state="delayed"), Page)
        assert_type(queue.pop(topic, wait=0), ReservedJob | None)
        assert_type(queue.purge(topic, state="ended"), int)
        assert_type(queue.schedule(topic, topic, every="2d", catch_up="skip"), float | None)
        assert_type(queue.schedules(), list[Schedule])
        assert_type(queue.unschedule(topic), None)
        assert_type(queue.stats(), Stats)


async def test_the_verbs_of_an_async_client_are_to_be_awaited(
    server: QueueServer, topic: str
) -> None:
    async with AsyncClient(server.url) as queue:
        job_id = assert_type(await queue.push(topic, delay=60), str)
        assert_type(await queue.get(job_id), JobDetails | None)
        assert_type(await queue.kick_topic(topic), int)
        assert_type(await queue.subscribers(), list[Subscriber])


worker = Worker()


@worker.task("order-close")
def close(order: int, note: str) -> bool:
    return f"{order}" == note


@worker.task("mail")
async def mail(to: str) -> int:
    return len(to)


def pushes_that_no_type_checker_accepts() -> None:
    """Never called: mypy complains of each comment that is not needed."""
    close.push("1001", "unpaid")  # type: ignore[arg-type]
    close.push(1001)  # type: ignore[call-arg]
    close.push(1001, "unpaid", dely="30m")  # type: ignore[call-arg]
    close.push(1001, "unpaid", priority="high")  # type: ignore[arg-type]
    close.push_many([(1001, 1002)])  # type: ignore[list-item]
    close("1001", "unpaid")  # type: ignore[arg-type]


async def test_a_task_keeps_the_types_of_its_function() -> None:
    queue = Queue(worker)
    worker.client, worker.async_client = queue, queue.asynchronous
    assert_type(close(1001, "1001"), bool)
    assert_type(await mail("me"), int)
    assert_type(close.push(1001, "unpaid", delay="30m", id="order-1001"), str)
    assert_type(await mail.push_async("me", delay=timedelta(days=1)), str)
    assert_type(close.push_many([(1001, "unpaid")]), list[Outcome])
    assert_type(close.cancel("shop:7"), int)
