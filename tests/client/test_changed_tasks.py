"""Tasks that are renamed, changed or removed while their jobs wait; a worker of several modules; what messages tell."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from typing import TYPE_CHECKING, Any

import pytest

from delayqueue import AsyncClient, Bury, Worker, testing
from delayqueue.client import Job
from delayqueue.testing import Buried, Finished, Queue, Released
from delayqueue.worker import untaken as module
from delayqueue.worker.untaken import untaken, watch
from tests.client.conftest import shop
from tests.waiting import until, until_async

if TYPE_CHECKING:
    from pathlib import Path

    from delayqueue.worker import Task


def closing(worker: Worker, **options: Any) -> Task[str, str, int]:
    @worker.task("order.close", **options)
    def close(order: str, cents: int = 0) -> str:
        return f"{order} {cents}"

    return close


def test_a_renamed_task_takes_the_jobs_of_its_former_names() -> None:
    worker, queue = shop()
    close = closing(worker, also=["close", "shut"], retry=[60])
    queue.push_many([Job(topic=topic, body={"order": topic}) for topic in ("close", "shut")])
    assert [ran.verdict for ran in queue.advance()] == [Finished("close 0"), Finished("shut 0")]
    assert queue.get(close.push("new", delay=60)).topic == "order.close"  # type: ignore[union-attr, call-arg]
    queue.push("shut", "{}", tags=["a"], delay=60)
    queue.push("order.close", "{}", tags=["a"], delay=60)
    assert close.cancel("a") == 2
    assert worker.handlers.policy_of("shut").delays_s() == (60,)


def test_a_former_name_is_its_own() -> None:
    worker, _ = shop()
    worker.on("close")(print)
    with pytest.raises(ValueError, match="close: a task has its topic for itself"):
        closing(worker, also=["close"])
    with pytest.raises(TypeError, match=r"also='close' is a text: write also=\['close'\]"):
        closing(worker, also="close")


def test_arguments_can_be_named_or_left_out() -> None:
    worker, queue = shop()
    push: Any = closing(worker).push
    ids = [push("1"), push("1", cents=5), push(order="1", cents=5, tags=["a"]), push(order="1")]
    bodies = [json.loads(job.body) for job in queue.get_many(ids) if job]
    assert bodies == [
        {"order": "1"},
        {"order": "1", "cents": 5},
        {"order": "1", "cents": 5},
        {"order": "1"},
    ]
    assert [ran.verdict.message for ran in queue.advance()] == ["1 0", "1 5", "1 5", "1 0"]
    with pytest.raises(TypeError, match="unexpected keyword argument 'dely'"):
        push("1", dely="30m")


def test_a_worker_has_the_tasks_of_several_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "shop_of_a_test.py").write_text(
        "from delayqueue import Worker\nworker = Worker(include=['orders_of_a_test'])\n", "utf-8"
    )
    (tmp_path / "orders_of_a_test.py").write_text(
        "from shop_of_a_test import worker\n@worker.task('close')\ndef close(): return 'closed'\n",
        "utf-8",
    )
    import shop_of_a_test  # type: ignore[import-not-found]  # noqa: PLC0415  # made above

    assert shop_of_a_test.worker.handlers.topics == ()
    assert testing.run(shop_of_a_test.worker, "close") == Finished("closed")
    queue = Queue(shop_of_a_test.worker)
    queue.push("close")
    assert len(queue.advance()) == 1
    for name in ("shop_of_a_test", "orders_of_a_test"):
        del sys.modules[name]
    with pytest.raises(TypeError, match="is a text: write include="):
        Worker(include="shop")  # type: ignore[arg-type]


# what messages tell


@pytest.mark.parametrize(
    ("end", "verdict"),
    [
        ("returns", Finished("card ****")),
        ("fails", Released("ValueError: card ****")),
        ("gives up", Buried("card ****")),
    ],
)
def test_messages_are_scrubbed_before_they_leave_the_process(
    end: str, verdict: testing.Finished | testing.Released | testing.Buried
) -> None:
    worker, queue = shop()

    @worker.scrub
    def without_cards(text: str) -> str:
        return text.replace("4111", "****")

    @worker.on("pay")
    def pay(job: Any) -> str:
        if end == "fails":
            raise ValueError("card 4111")  # 4111: this line is in the traceback
        if end == "gives up":
            raise Bury("card 4111")
        return "card 4111"

    queue.push("pay", id="a")
    [ran] = queue.advance()
    assert ran.verdict == verdict
    assert "4111" not in getattr(ran.verdict, "traceback", "")


def test_a_scrub_that_raises_lets_nothing_through() -> None:
    worker, queue = shop()

    @worker.scrub
    def broken(text: str) -> str:
        raise LookupError(text)

    @worker.on("pay", retry=[])
    def pay(job: Any) -> str:
        raise ValueError("card 4111")

    job_id = queue.push("pay")
    queue.advance()
    ended = queue.get(job_id)
    assert ended
    assert ended.state == "buried"
    assert ended.message.splitlines()[0] == "(a message that could not be scrubbed)"
    assert "4111" not in ended.message


# jobs that nobody takes


async def test_topics_named_like_a_workers_whose_jobs_nobody_takes_are_logged_once(
    queue: AsyncClient,
    topic: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(module, "AGE_S", 0.1)
    word = f"{topic}x".replace("-", "").replace("_", "")
    for name in (f"{word}.old", f"{word}.new", f"other{word}.old", f"{word}.paused"):
        await queue.push(name)
    await queue.pause(f"{word}.paused")
    mine = [f"{word}.new", f"{word}.other"]

    async def is_found() -> bool:
        return await untaken(queue, mine) == [(f"{word}.old", 1)]

    await until_async(is_found)
    monkeypatch.setattr(module, "FIRST_S", 0)
    monkeypatch.setattr(module, "INTERVAL_S", 0)
    looks: list[object] = []

    async def look(*asked: Any) -> list[tuple[str, int]]:
        looks.append(found := await untaken(*asked))
        return found

    monkeypatch.setattr(module, "untaken", look)
    with caplog.at_level(logging.WARNING):
        watching = asyncio.create_task(watch(queue, mine))
        await until(lambda: len(looks) >= 3)
        watching.cancel()
    [message] = caplog.messages
    assert message.startswith(f"nobody takes the 1 ready jobs of {word}.old; ")
    assert message.endswith(f"also=['{word}.old']")
    await queue.resume(f"{word}.paused")
    for name in (f"{word}.old", f"{word}.new", f"other{word}.old", f"{word}.paused"):
        await queue.purge(name)
