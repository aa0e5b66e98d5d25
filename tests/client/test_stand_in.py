"""The queue in memory beside a real server: what one refuses or answers, the other does, too."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

import pytest

from delayqueue import Client, Worker
from delayqueue.client import Job
from delayqueue.config.config import Config
from delayqueue.domain.job import State
from delayqueue.errors import QueueError
from delayqueue.testing import Finished, Queue, Ran
from delayqueue.testing.rules import MAX_BODY_BYTES
from tests.client.conftest import at_work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.processes import QueueServer


@pytest.fixture(scope="module")
def both(server: QueueServer) -> Iterator[tuple[Client, Client]]:
    with Client(server.url, retries=0) as real:
        yield real, Queue()


def outcome(queue: Client, deed: Callable[[Client], object]) -> object:
    """What it returns, or the error that it raises."""
    try:
        return deed(queue)
    except QueueError as error:
        return type(error), str(error).partition(";")[0]  # the server may know what was meant


def state_of(queue: Client, job_id: str) -> object:
    """The job's state, and whether it has ended; None if there is no such job."""
    job = queue.get(job_id)
    return job and (job.state, job.ended is not None)


DEEDS: Final[dict[str, Callable[[Client], object]]] = {
    "an unknown job is deleted": lambda queue: queue.delete("unknown"),
    "an unknown job is kicked": lambda queue: queue.kick("unknown"),
    "an unknown job is moved": lambda queue: queue.reschedule("unknown", delay=5),
    "an unknown job is looked for": lambda queue: queue.get("unknown"),
    "many unknown jobs are deleted": lambda queue: [
        one.code for one in queue.delete_many(["unknown", "nobody"])
    ],
    "no TTR": lambda queue: queue.push("t", ttr=0),
    "a number that is too small": lambda queue: queue.reschedule("unknown", delay=-5),
    "a body of 2 MB": lambda queue: queue.push("t", "x" * 2_000_000),
    "another body of 2 MB": lambda queue: queue.kick("unknown", body="x" * 2_000_000),
    "a topic with a comma": lambda queue: queue.push("a,b"),
    "no topic": lambda queue: queue.push(" "),
    "a preset that does not exist": lambda queue: queue.push("t", retry="alpiay"),
    "a misspelt field of a schedule": lambda queue: queue.push("t", retry={"max": 3, "bsae": 1}),
    "65 tags": lambda queue: queue.push("t", tags=[str(number) for number in range(65)]),
    "a tag without letters": lambda queue: queue.cancel(" "),
    "a tag that is too long": lambda queue: queue.cancel("x" * 257),
    "a time in milliseconds": lambda queue: queue.push("t", due=1_700_000_000_000),
    "one bad job of two": lambda queue: [
        (one.code, one.message)
        for one in queue.push_many([Job(topic="t", id="of-two"), Job(topic="a,b", id="two")])
    ],
    "many ids with blanks around them": lambda queue: [
        (one.id, one.code)
        for one in queue.push_many(
            [Job(topic=topic, id=" blanks ", if_exists="fail") for topic in ("t", "t", "a,b")]
        )
    ],
    "a delay of more than a year": lambda queue: queue.push("t", delay="400d"),
    "a move by more than a year": lambda queue: queue.reschedule("unknown", delay="400d"),
    "an id of another topic": lambda queue: (
        queue.push("one", id="shared", delay=60),
        outcome(queue, lambda queue: queue.push("other", id="shared")),
        outcome(queue, lambda queue: queue.push("other", id="shared", if_exists="keep")),
        outcome(queue, lambda queue: queue.push("one", id="shared", if_exists="fail")),
    ),
    "a deleted job is kept as cancelled": lambda queue: (
        queue.push("t", id="gone", delay=60, retain="10m"),
        queue.delete("gone"),
        queue.delete("gone"),
        state_of(queue, "gone"),
        outcome(queue, lambda queue: queue.kick("gone")),
        outcome(queue, lambda queue: queue.reschedule("gone", delay=5)),
        outcome(queue, lambda queue: queue.push("t", id="gone", if_exists="fail")),
        queue.push("t", id="gone", if_exists="keep"),
        state_of(queue, "gone"),
        queue.push("t", id="gone", delay=60, if_exists="keep", idempotency_key="other"),
        state_of(queue, "gone"),
    ),
    "a repetition of a cancelled job changes nothing": lambda queue: (
        queue.push("t", id="once", delay=60, retain=60, tags=["of-once"], idempotency_key="k"),
        queue.cancel("of-once"),
        queue.cancel("of-once"),
        queue.push("t", id="once", delay=60, idempotency_key="k"),
        state_of(queue, "once"),
        queue.push("t", id="once", delay=60),
        state_of(queue, "once"),
    ),
    "a move to nowhere": lambda queue: queue.reschedule("unknown"),
    "a move to two times": lambda queue: queue.reschedule("unknown", delay=5, due=4e9),
    "a move to a time and by a distance": lambda queue: queue.reschedule("unknown", due=4e9, by=5),
    "a due job is moved": lambda queue: (
        queue.push("untaken", id="past", due=1000),
        queue.reschedule("past", by=30),
        state_of(queue, "past"),
    ),
    "ready jobs of a tag are kicked": lambda queue: queue.kick_tag("none", state=State.READY),
    "reserved jobs of a topic are kicked": lambda queue: queue.kick_topic(
        "none", state=State.RESERVED
    ),
    "no jobs": lambda queue: queue.push_many([]),
    "1001 jobs": lambda queue: queue.push_many([Job(topic="t") for _ in range(1001)]),
    "white space around an id": lambda queue: (
        queue.push("t", id=" spaced "),
        getattr(queue.get("spaced"), "id", None),
    ),
}


@pytest.mark.parametrize("deed", DEEDS.values(), ids=DEEDS)
def test_both_say_and_do_the_same(
    both: tuple[Client, Client], deed: Callable[[Client], object]
) -> None:
    real, fake = (outcome(queue, deed) for queue in both)
    assert fake == real


def test_a_server_makes_the_id_if_it_is_asked_to(both: tuple[Client, Client]) -> None:
    for queue in both:
        ids = {queue.push("t", id="*", delay=60), queue.push("t", id="*", delay=60)}
        assert len(ids - {"*"}) == 2
        assert all(queue.get_many(ids))


def test_the_longest_body_is_the_servers() -> None:
    assert Config().max_body_bytes == MAX_BODY_BYTES


def failing(url: str | None, topic: str) -> Worker:
    worker = Worker(url)

    @worker.on(topic, retry=[0, 0])
    def fail(job: Any) -> None:
        raise ValueError(f"attempt {job.attempt}")

    return worker


async def test_the_attempts_of_a_job_are_kept(
    server: QueueServer, both: tuple[Client, Client], topic: str
) -> None:
    real, _ = both
    fake = Queue(failing(None, topic))
    fake.push(topic, id=topic)
    await fake.aadvance()
    async with at_work(failing(server.url, topic)):
        await asyncio.to_thread(real.push, topic, id=topic)
        await asyncio.to_thread(real.get, topic, wait=20)
    told, wanted = fake.get(topic), await asyncio.to_thread(real.get, topic)
    assert told
    assert wanted
    assert [(one.attempt, one.message) for one in told.attempts] == [
        (one.attempt, one.message) for one in wanted.attempts
    ]
    assert len(told.attempts) == 3
    assert (told.state, told.attempt, told.message) == (
        wanted.state,
        wanted.attempt,
        wanted.message,
    )


# the clock


def timed(worker: Worker) -> list[float]:
    runs: list[float] = []

    @worker.task("sweep", every="15m")
    def sweep() -> str:
        runs.append(time.time())
        return "swept"

    return runs


def test_tasks_with_times_run_when_the_clock_comes_to_them() -> None:
    worker = Worker()
    timed(worker)
    queue = Queue()
    queue.now_s = 1_800_000_000 - 60  # a quarter of an hour begins in a minute
    queue.add(worker)
    assert queue.advance("59s") == []
    ran: list[Ran] = queue.advance("31m")
    assert [one.verdict for one in ran] == [Finished("swept")] * 3
    assert [one.job.due - 1_800_000_000 for one in ran] == [0, 900, 1800]
    assert ran[0].job.id == "task:sweep@2027-01-15T08:00:00Z"
    assert ran[0].job.body == "{}"


def test_a_job_comes_when_parts_of_a_second_add_up_to_its_delay() -> None:
    worker = Worker()
    worker.on("t")(lambda _: None)
    for at_s in range(1_800_000_000, 1_800_000_200, 10):
        queue = Queue(worker)
        queue.now_s = at_s + 0.123
        queue.push("t", delay=0.6)
        assert [len(queue.advance(0.1)) for _ in range(6)] == [0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize("ends", ["finished", "cancelled"])
def test_the_record_of_an_ended_job_is_kept_as_long_as_it_says(ends: str) -> None:
    worker = Worker()
    worker.on("t")(lambda _: None)
    queue = Queue(worker)
    job_id = queue.push("t", retain="10m", delay="1m")
    if ends == "cancelled":
        queue.delete(job_id)
        queue.advance("9m")
    else:
        queue.advance("10m")
    assert state_of(queue, job_id) == (ends, True)
    queue.advance("1m")
    assert queue.get(job_id) is None


def test_a_job_that_is_deleted_while_its_handler_runs_stays_cancelled() -> None:
    worker = Worker()
    queue = Queue(worker)

    @worker.on("t")
    def end(job: Any) -> None:
        queue.delete(job.id)
        raise ValueError

    job_id = queue.push("t", retain="10m")
    queue.advance()
    assert state_of(queue, job_id) == ("cancelled", True)


def test_another_clock_is_turned_with_the_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker()
    runs = timed(worker)
    queue = Queue(worker)
    queue.turn = lambda now_s: monkeypatch.setattr(time, "time", lambda: now_s)
    dues = [one.job.due for one in queue.advance("1h")]
    assert runs == dues
    assert time.time() == queue.now_s
