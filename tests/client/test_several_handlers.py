"""Several handlers of a topic: in order, each with what those before it returned, and each one's failure told."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, assert_type

import pytest

from delayqueue import Bury, Retry, Worker, testing
from delayqueue.client import AsyncClient
from delayqueue.testing import Buried, Finished, Queue, Released
from delayqueue.worker import HandledJob, HandlerResult, Next, ReservedJob, current_job
from tests.client.conftest import at_work
from tests.processes import QueueServer


@dataclass
class Order:
    number: str
    cents: int


ORDER = Order("1001", 420)


def make_invoice(order: Order) -> str:
    return f"I-{order.number}"


async def add_points(order: Order, job: HandledJob) -> dict[str, object]:
    return {"points": order.cents // 100, "for": job.results["make_invoice"].message}


def no_points(_: ReservedJob) -> None:
    raise ValueError("no account")


def notify(job: HandledJob) -> str:
    return ", ".join(f"{name}: {told.message}" for name, told in job.results.items())


@pytest.fixture
def worker() -> Worker:
    return Worker()


def test_each_handler_gets_what_those_before_it_returned(worker: Worker) -> None:
    assert_type(worker.on("order-paid", [make_invoice, add_points, notify]), None)
    points = '{"points":4,"for":"I-1001"}'
    told = f"make_invoice: I-1001, add_points: {points}"
    assert testing.run(worker, "order-paid", ORDER) == Finished(f"I-1001; {points}; {told}")


def test_a_result_is_handed_on_as_a_whole(worker: Worker) -> None:
    long, sizes = "é" * 5000, []

    def keep(job: HandledJob) -> None:
        sizes.append(len(job.results["write"].message))

    def write(_: ReservedJob) -> str:
        return long

    worker.on("t", [write, keep])
    testing.run(worker, "t")
    assert sizes == [5000]


def test_decorated_handlers_are_handed_results_in_their_order(worker: Worker) -> None:
    worker.on("order-paid", order=20)(notify)
    worker.on("order-paid", order=10)(make_invoice)
    assert testing.run(worker, "order-paid", ORDER) == Finished("I-1001; make_invoice: I-1001")


def test_the_first_failure_ends_it_and_says_which_handler_it_was(worker: Worker) -> None:
    ran: list[HandledJob] = []
    worker.on("order-paid", [make_invoice, no_points, ran.append])
    verdict = testing.run(worker, "order-paid", ORDER)
    assert verdict == Released("no_points: ValueError: no account")
    assert isinstance(verdict, Released)
    assert 'raise ValueError("no account")' in verdict.traceback
    assert ran == []


def test_the_handlers_behind_a_failure_run_if_they_shall_and_know_of_it(worker: Worker) -> None:
    seen: dict[str, HandlerResult] = {}

    def last(job: HandledJob) -> None:
        seen.update(job.results)
        raise OSError("disk")

    worker.on("order-paid", [no_points, make_invoice, last], stop_on_failure=False)
    told = Released("no_points: ValueError: no account; last: OSError: disk")
    assert testing.run(worker, "order-paid", ORDER) == told
    assert seen == {
        "no_points": HandlerResult(False, "ValueError: no account"),
        "make_invoice": HandlerResult(True, "I-1001"),
    }


def raising(error: BaseException) -> Callable[[ReservedJob], None]:
    def fail(_: ReservedJob) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (Bury("a"), Bury("b"), Buried("fail: a; fail-2: b")),
        (Bury("a"), ValueError("b"), Released("fail: a; fail-2: ValueError: b")),
        (Retry(60, "a"), Retry(5, "b"), Released("fail: a; fail-2: b", 5)),
        (Retry(60, "a"), Bury("b"), Released("fail: a; fail-2: b", 60)),
        # its schedule is the patience of the one without a delay
        (Retry(60, "a"), ValueError("b"), Released("fail: a; fail-2: ValueError: b")),
        (SystemExit(1), LookupError("b"), Released("fail: SystemExit: 1; fail-2: LookupError: b")),
    ],
)
def test_several_failures_are_one_verdict(
    worker: Worker, first: BaseException, second: BaseException, verdict: object
) -> None:
    worker.on("t", [raising(first), raising(second)], stop_on_failure=False)
    assert testing.run(worker, "t") == verdict


class BadOrder(ExceptionGroup[Exception]):
    """As validators raise it, with all mistakes of a body."""


@pytest.mark.parametrize(
    ("errors", "options", "verdict"),
    [
        ([Bury("a")], {}, Buried("a")),
        ([Retry(60, "a")], {}, Released("a", 60)),
        ([KeyError("a")], {}, Released("KeyError: 'a'")),
        ([KeyError("a")], {"bury_on": LookupError}, Buried("KeyError: 'a'")),
        ([KeyError("a")], {"retry_on": OSError}, Buried("KeyError: 'a'")),
        ([ExceptionGroup("b", [Bury("a")])], {"bury_on": Exception}, Buried("a")),
        ([KeyError("a")], {"bury_on": BadOrder}, Buried("KeyError: 'a'")),
        ([KeyError("a")], {"retry_on": BadOrder}, Released("KeyError: 'a'")),
        (
            [KeyError("a"), Bury("b")],
            {},
            Released("BadOrder: bad (2 sub-exceptions): KeyError: 'a'; b"),
        ),
        (
            [KeyError("a"), Bury("b")],
            {"bury_on": KeyError},
            Buried("BadOrder: bad (2 sub-exceptions): KeyError: 'a'; b"),
        ),
    ],
)
def test_a_group_means_what_its_errors_mean(
    worker: Worker, errors: Sequence[Exception], options: dict[str, Any], verdict: object
) -> None:
    worker.on("t", raising(BadOrder("bad", errors)), **options)
    assert testing.run(worker, "t") == verdict


def test_a_middleware_may_run_the_handlers_in_a_task_group(worker: Worker) -> None:
    @worker.middleware
    async def beside(job: ReservedJob, go_on: Next) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0))
            await go_on(job)

    worker.on("order", raising(Retry(60, "later")))
    worker.on("hopeless", raising(LookupError("gone")), bury_on=LookupError)
    worker.on("several", [raising(Bury("a")), raising(Bury("b"))], stop_on_failure=False)
    assert testing.run(worker, "order") == Released("later", 60)
    assert testing.run(worker, "hopeless") == Buried("LookupError: gone")
    assert testing.run(worker, "several") == Buried("fail: a; fail-2: b")


def test_an_error_that_no_attempt_would_cure_buries_the_job_if_it_is_alone(worker: Worker) -> None:
    worker.on("t", [no_points, notify], stop_on_failure=False, bury_on=ValueError)
    assert testing.run(worker, "t") == Buried("no_points: ValueError: no account")


def test_a_body_that_a_handler_cannot_read_is_its_failure(worker: Worker) -> None:
    worker.on("t", [notify, make_invoice])
    verdict = testing.run(worker, "t", {"number": "1001"})
    assert verdict == Buried(
        "make_invoice: the body is not a valid Order: cents: Field required",
    )


def test_what_nobody_runs_is_a_failure_of_the_handler_that_returned_it(worker: Worker) -> None:
    worker.on("t", [lambda _: iter(map(str, "ab")), notify])
    assert testing.run(worker, "t").message.startswith("<lambda>: TypeError: it returned a map")


def test_handlers_are_named_as_their_functions_and_numbered_if_two_have_one_name(
    worker: Worker,
) -> None:
    def note(word: str, _: ReservedJob) -> str:
        return word

    class Ship:
        def __call__(self, _: ReservedJob) -> str:
            return "c"

    worker.on("t", [partial(note, "a"), partial(note, "b"), Ship(), notify])
    assert testing.run(worker, "t") == Finished("a; b; c; note: a, note-2: b, Ship: c")


def test_a_middleware_sees_what_the_handler_raised(worker: Worker) -> None:
    seen: list[BaseException] = []

    @worker.middleware
    async def watch(job: ReservedJob, go_on: Next) -> None:
        try:
            await go_on(replace(job, body="changed"))
        except BaseException as error:
            seen.append(error)
            raise

    worker.on("one", [no_points, notify])
    worker.on("both", [no_points, no_points], stop_on_failure=False)
    testing.run(worker, "one")
    testing.run(worker, "both")
    [alone, group] = seen
    assert isinstance(alone, ValueError)
    assert isinstance(group, ExceptionGroup)
    assert group.message == "failed: no_points, no_points-2"


def test_a_middleware_may_try_the_handlers_again(worker: Worker) -> None:
    """What the first try has left counts no more."""
    tries = []

    @worker.middleware
    async def again(job: ReservedJob, go_on: Next) -> None:
        try:
            await go_on(job)
        except OSError:
            await go_on(job)

    def flaky(job: HandledJob) -> str:
        tries.append([*job.results])
        if len(tries) == 1:
            raise OSError("first")
        return "ok"

    worker.on("one", flaky)
    assert testing.run(worker, "one") == Finished("ok")
    tries.clear()
    worker.on("two", [lambda _: "a", flaky])
    assert testing.run(worker, "two") == Finished("a; ok")
    assert tries == [["<lambda>"], ["<lambda>"]]


@pytest.mark.parametrize("end", [ValueError("second"), TimeoutError(), None])
def test_a_middleware_may_raise_the_error_of_an_earlier_try(
    worker: Worker, end: Exception | None
) -> None:
    """It means what it meant then, whatever the second try has come to."""

    @worker.middleware
    async def again(job: ReservedJob, go_on: Next) -> None:
        try:
            await go_on(job)
        except LookupError as first:
            with suppress(ValueError, TimeoutError):
                async with asyncio.timeout(0 if isinstance(end, TimeoutError) else None):
                    await go_on(job)
            raise first from None

    tries = 0

    async def fail(_: ReservedJob) -> None:
        nonlocal tries
        tries += 1
        if tries % 2:
            raise LookupError("first")
        await asyncio.sleep(0)
        if end:
            raise end

    worker.on("one", fail, bury_on=LookupError)
    worker.on("two", [fail, notify], bury_on=LookupError)
    assert testing.run(worker, "one") == Buried("LookupError: first")
    assert testing.run(worker, "two") == Buried("fail: LookupError: first")


def test_an_error_that_two_handlers_raise_means_what_each_one_says(worker: Worker) -> None:
    fail = raising(LookupError("gone"))
    worker.on("t", fail, bury_on=LookupError, stop_on_failure=False)
    worker.on("t", fail)
    assert testing.run(worker, "t") == Released(
        "fail: LookupError: gone; fail-2: LookupError: gone"
    )


def test_a_middleware_sees_an_error_that_no_attempt_would_cure(worker: Worker) -> None:
    """As it was raised; it still buries the job, unless the middleware makes something else of it."""
    seen: list[BaseException] = []

    @worker.middleware
    async def watch(job: ReservedJob, go_on: Next) -> None:
        try:
            await go_on(job)
        except LookupError as error:
            seen.append(error)
            if job.topic == "translated":
                raise OSError("away") from error
            if job.topic != "swallowed":
                raise

    for topic in ("raised", "translated", "swallowed"):
        worker.on(topic, raising(LookupError("gone")), bury_on=LookupError)
    worker.on("several", [notify, raising(LookupError("gone"))], bury_on=LookupError)
    assert testing.run(worker, "raised") == Buried("LookupError: gone")
    assert testing.run(worker, "several") == Buried("fail: LookupError: gone")
    assert testing.run(worker, "translated") == Released("OSError: away")
    assert testing.run(worker, "swallowed") == Finished()
    assert [repr(error) for error in seen] == ["LookupError('gone')"] * 4


def test_the_current_job_has_the_results_and_is_still_plain_data(worker: Worker) -> None:
    found: dict[str, Any] = {}

    async def deep(_: ReservedJob) -> None:
        job = current_job()
        found.update(asdict(job))
        await asyncio.to_thread(found.update, current=job.results["make_invoice"].message)

    worker.on("order-paid", [make_invoice, deep])
    assert testing.run(worker, "order-paid", ORDER) == Finished("I-1001")
    assert (found["current"], found["results"]) == ("I-1001", {"make_invoice": (True, "I-1001")})


def test_the_queue_in_memory_runs_all_handlers_again(worker: Worker) -> None:
    ran: list[tuple[int, list[str]]] = []

    def first(job: HandledJob) -> str:
        ran.append((job.attempt, [*job.results]))
        return "done"

    def second(job: HandledJob) -> None:
        ran.append((job.attempt, [*job.results]))
        if job.attempt == 1:
            raise OSError("disk")

    worker.on("t", [first, second], retry=["10s"])
    queue = Queue(worker)
    job_id = queue.push("t")
    queue.advance()
    job = queue.get(job_id)
    assert job is not None
    assert job.message.startswith("second: OSError: disk\n")
    queue.advance("10s")
    assert ran == [(1, []), (1, ["first"]), (2, []), (2, ["first"])]


@pytest.mark.parametrize(
    ("handlers", "error", "says"),
    [
        ([], ValueError, "on: name a handler"),
        (["a", "b"], TypeError, "on: 'a': must be a function; write topics one by one"),
        (b"a", TypeError, "is a text"),
    ],
)
def test_what_are_no_handlers_is_refused(
    worker: Worker, handlers: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        worker.on("t", handlers)
    with pytest.raises(ValueError, match="on: name a topic"):
        worker.on()
    assert worker.handlers.topics == ()


def test_topics_are_those_that_their_jobs_come_with(worker: Worker) -> None:
    worker.on(" paid ", notify)
    worker.task(" close", also=["old "])(lambda: None)
    assert worker.handlers.topics == ("paid", "close", "old")


@pytest.mark.parametrize(
    ("topics", "says"),
    [
        (("x,y",), "topic: no comma"),
        (("",), "topic: must not be empty"),
        (("t", "é" * 129), "topic: 258 bytes, at most 256"),
        (("mail", " mail"), "topic mail: named twice"),
    ],
)
def test_topics_that_no_job_would_have_are_refused(
    worker: Worker, topics: Sequence[str], says: str
) -> None:
    topic, *others = topics
    for register in (worker.on(*topics), worker.task(topic, also=others)):
        with pytest.raises(ValueError, match=says):
            register(lambda: None)
    assert worker.handlers.topics == ()


def test_a_topic_of_a_task_takes_no_other_handler(worker: Worker) -> None:
    worker.task("close", also=["old"])(lambda: None)
    for topic in ("close", "old"):
        with pytest.raises(ValueError, match=f"{topic}: a task has its topic for itself"):
            worker.on(topic, notify)


async def test_a_job_tells_which_of_its_handlers_have_failed(
    server: QueueServer, queue: AsyncClient, topic: str
) -> None:
    worker = Worker(server.url)
    worker.on(topic, [no_points, make_invoice, no_points], stop_on_failure=False, retry=["0s"])
    async with at_work(worker):
        job_id = await queue.push(topic, ORDER)
        job = await queue.get(job_id, wait=30)
    assert job is not None
    told = "no_points: ValueError: no account; no_points-2: ValueError: no account"
    assert [attempt.message.splitlines()[0] for attempt in job.attempts] == [told, told]
