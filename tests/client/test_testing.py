"""The test kit: handlers without a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from delayqueue import Bury, Retry, Worker, testing
from delayqueue.testing import Buried, Finished, Released

if TYPE_CHECKING:
    from delayqueue.worker import ReservedJob
    from delayqueue.worker.handlers import Next


@pytest.fixture
def worker() -> Worker:
    return Worker()


def test_a_handler_that_returns_has_finished_its_job(worker: Worker) -> None:
    bodies = []

    @worker.on("mail", "sms")
    def handle(job: ReservedJob) -> None:
        bodies.append((job.topic, job.body))

    assert testing.run(worker, "mail", "Hello") == Finished()
    assert testing.run(worker, "sms", "Hi") == Finished()
    assert bodies == [("mail", "Hello"), ("sms", "Hi")]


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (ValueError("no"), Released("ValueError: no")),
        (Retry(60, "the bank is closed"), Released("the bank is closed", 60)),
        (Bury("no such order"), Buried("no such order")),
    ],
)
async def test_what_a_handler_raises_decides(
    worker: Worker, error: Exception, verdict: object
) -> None:
    @worker.on("mail")
    async def handle(job: ReservedJob) -> None:
        raise error

    assert await testing.arun(worker, "mail") == verdict


def test_handlers_after_one_that_raised_do_not_run(worker: Worker) -> None:
    ran = []

    @worker.on("order", order=2)
    def second(job: ReservedJob) -> None:
        ran.append(2)

    @worker.on("order", order=1)
    def first(job: ReservedJob) -> None:
        ran.append(1)
        raise OSError("disk")

    assert testing.run(worker, "order") == Released("OSError: disk")
    assert ran == [1]


def test_middlewares_stand_around_the_handlers_in_their_order(worker: Worker) -> None:
    seen = []

    @worker.middleware
    async def outer(job: ReservedJob, go_on: Next) -> None:
        seen.append("in")
        await go_on(job)
        seen.append("out")

    @worker.middleware
    async def inner(job: ReservedJob, go_on: Next) -> None:
        seen.append("inner")
        await go_on(job)

    @worker.on("mail")
    def handle(job: ReservedJob) -> None:
        seen.append("handler")

    testing.run(worker, "mail")
    assert seen == ["in", "inner", "handler", "out"]


def test_a_handler_learns_its_attempt(worker: Worker) -> None:
    @worker.on("mail")
    def handle(job: ReservedJob) -> None:
        if job.attempt == 3:
            raise Bury("three times is enough")

    assert testing.run(worker, "mail", attempt=2) == Finished()
    assert testing.run(worker, "mail", attempt=3) == Buried("three times is enough")


def test_a_topic_without_handlers_is_named(worker: Worker) -> None:
    with pytest.raises(KeyError, match="nobody"):
        testing.run(worker, "nobody")


@pytest.mark.parametrize(
    "mistake",
    [
        lambda: Worker(concurrency=0),
        lambda: Worker("nowhere").run(),
        lambda: Worker().run(),
        lambda: Worker().on(),
    ],
    ids=["no concurrency", "no handlers and no url", "no handlers", "no topic"],
)
def test_a_mistake_is_said_at_once(mistake) -> None:  # type: ignore[no-untyped-def]  # any callable
    with pytest.raises(ValueError, match=r"concurrency|handlers|topic"):
        mistake()
