"""The test kit: handlers without a server."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from datetime import timedelta
from functools import partial, wraps
from typing import Any

import pytest

from delayqueue import Retry, Worker, testing
from delayqueue.testing import Buried, Finished, Released
from delayqueue.worker import ReservedJob
from delayqueue.worker.handlers import Next
from delayqueue.worker.policy import Policy
from tests.waiting import wait_until


@pytest.fixture
def worker() -> Worker:
    return Worker()


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


def test_what_handlers_return_is_the_message(worker: Worker) -> None:
    for said in (None, "shipped", 7):
        worker.on("order")(lambda _, said=said: said)
    assert testing.run(worker, "order") == Finished("shipped; 7")


def test_a_handler_and_a_middleware_get_what_the_lifespan_yields(worker: Worker) -> None:
    seen: list[str] = []

    @worker.lifespan
    async def shop() -> AsyncGenerator[str, None]:
        seen.append("opened")
        yield "Ann's"
        seen.append("closed")

    @worker.middleware
    async def named(job: ReservedJob, go_on: Next, shop: str) -> None:
        seen.append(f"around {shop}")
        await go_on(job)

    @worker.on("order")
    def ship(job: ReservedJob, shop: str, *, fast: bool = False) -> str:
        return f"by {shop}"

    assert testing.run(worker, "order") == Finished("by Ann's")
    assert seen == ["opened", "around Ann's", "closed"]
    assert testing.run(worker, "order", context="Ben's") == Finished("by Ben's")
    with pytest.raises(ValueError, match="lifespan"):
        worker.lifespan(shop)


@pytest.mark.parametrize("is_async", [True, False])
def test_a_handler_that_takes_too_long_has_failed(worker: Worker, is_async: bool) -> None:
    goes_on, has_ended = threading.Event(), list[ReservedJob]()

    async def sleep(job: ReservedJob) -> None:
        await asyncio.sleep(20)
        has_ended.append(job)

    def wait(job: ReservedJob) -> None:
        goes_on.wait(20)
        has_ended.append(job)

    worker.on("mail", timeout=0.01)(sleep if is_async else wait)
    assert testing.run(worker, "mail") == Released("timeout: 0.01 s")
    assert has_ended == []
    goes_on.set()


def test_a_timeout_of_the_handlers_own_making_is_an_error_as_any_other(worker: Worker) -> None:
    @worker.on("mail", timeout=60)
    async def handle(job: ReservedJob) -> None:
        raise TimeoutError("the bank")

    assert testing.run(worker, "mail") == Released("TimeoutError: the bank")


@pytest.mark.parametrize("is_async", [True, False])
def test_a_next_that_finds_nothing_is_said_with_its_line(worker: Worker, is_async: bool) -> None:
    """Python makes another error of it, which no line of the handler has raised."""

    def find(job: ReservedJob) -> object:
        return next(iter(()))

    async def afind(job: ReservedJob) -> object:
        return next(iter(()))

    worker.on("mail")(afind if is_async else find)
    verdict = testing.run(worker, "mail")
    assert isinstance(verdict, Released)
    assert "find\n    return next(iter(()))" in verdict.traceback


@pytest.mark.parametrize(
    ("options", "delays_s", "last", "reason"),
    [
        ({}, [2.0**n for n in range(12)] + [3600] * 7, 20, "the defaults"),
        ({"retry": ["10m", 5]}, [600, 5], 3, "the schedule says how many"),
        ({"retry": ["10m", 5], "max_attempts": 5}, [600, 5, 5, 5], 5, "its last one is repeated"),
        ({"retry": ["10m", 5], "max_attempts": 2}, [600], 2, "it is cut"),
        ({"retry": "wechat", "max_attempts": 3}, [15, 15], 3, "a preset"),
        ({"retry": {"base": "2s"}, "max_attempts": 4}, [2, 4, 8], 4, "a formula"),
        (
            {"retry": {"max": 3, "base": timedelta(seconds=2), "cap": timedelta(seconds=5)}},
            *([2, 4, 5], 4, "a formula of timedeltas"),
        ),
        ({"retry": {"max": 2, "base": 1}}, [1, 2], 3, "a formula that says how many"),
        ({"retry": [], "max_attempts": 1}, [], 1, "once"),
        ({"max_attempts": 1}, [], 1, "once, too"),
        ({"retry": [timedelta(minutes=1)], "max_attempts": None}, [60] * 64, None, "for ever"),
    ],
)
def test_a_policy_says_when_a_job_comes_again(
    options: dict[str, Any], delays_s: list[float], last: int | None, reason: str
) -> None:
    policy = Policy(**options)
    policy.check()
    assert list(policy.delays_s()) == delays_s, reason
    assert policy.last_attempt == last


def test_a_policy_may_be_listed_as_one_likes(worker: Worker) -> None:
    kinds: list[Any] = [["10m", 5], ("10m", 5), (delay for delay in ("10m", 5))]
    for delays in kinds:
        worker.on("mail", retry=delays)(print)
    assert worker.handlers.policy_of("mail").delays_s() == (600, 5)


def test_a_job_is_buried_after_its_last_attempt(worker: Worker) -> None:
    @worker.on("mail", max_attempts=3)
    def handle(job: ReservedJob) -> None:
        raise Retry(5, "not yet")

    assert testing.run(worker, "mail", attempt=2) == Released("not yet", 5)
    assert testing.run(worker, "mail", attempt=3) == Buried("not yet")


def test_the_queue_in_memory_uses_its_threads_again(worker: Worker) -> None:
    used: list[threading.Thread] = []
    queue = testing.Queue(worker)

    @worker.on("mail")
    def handle(job: ReservedJob) -> None:
        used.append(threading.current_thread())

    def is_used_again() -> bool:
        queue.push("mail")
        queue.advance()
        return len({*used}) < len(used)

    wait_until(is_used_again)


def test_handlers_of_a_topic_agree_on_what_becomes_of_its_jobs(worker: Worker) -> None:
    worker.on("order", "mail", max_attempts=3)(print)
    worker.on("order")(print)
    with pytest.raises(ValueError, match="agree"):
        worker.on("order", max_attempts=4)(print)


def test_a_topic_without_handlers_is_named(worker: Worker) -> None:
    with pytest.raises(KeyError, match="nobody"):
        testing.run(worker, "nobody")


@pytest.mark.parametrize(
    "mistake",
    [
        lambda: Worker(concurrency=0),
        lambda: Worker("nowhere").run(),  # no handlers
        lambda: Worker().run(),
        lambda: Worker().on(),
        lambda: Worker().on("topic", max_attempts=0),
        lambda: Worker().on("topic", max_attempts=66),
        lambda: Worker().on("topic", retry=[], max_attempts=2),
        lambda: Worker().on("topic", retry=["10 parsecs"]),
        lambda: Worker().on("topic", retry="weekly"),
        lambda: Worker().on("topic", retry={"preset": "wechat", "jitter": 0.1}),
        lambda: Worker().on("topic", timeout=0),
    ],
)
def test_a_mistake_is_said_at_once(mistake) -> None:  # type: ignore[no-untyped-def]  # any callable
    with pytest.raises(ValueError, match=r"concurrency|handlers|topic|attempts|must be|delay|goes"):
        mistake()


def no_argument() -> None: ...
def named_argument(job: ReservedJob, *, to: str) -> None: ...
async def no_next(job: ReservedJob) -> None: ...


def injected(function: Callable[..., None]) -> Callable[..., None]:
    """As libraries for dependency injection do it."""

    @wraps(function)
    def call(*jobs: ReservedJob) -> None:
        function(*jobs, to="Ann")

    return call


@pytest.mark.parametrize(
    ("register", "says"),
    [
        (lambda it: it.on("t", no_argument), "no_argument: a call with 1 argument fails: too many"),
        (lambda it: it.on("t", named_argument), "named_argument: a call with 1 argument fails: mi"),
        (lambda it: it.middleware(no_next), "no_next: a call with 2 arguments fails: too many"),
    ],
)
def test_a_function_that_each_job_would_fail_in_is_refused(
    worker: Worker, register: Callable[[Worker], object], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        register(worker)


def test_a_function_whose_arguments_are_unknown_or_not_required_is_taken(worker: Worker) -> None:
    def optional(job: ReservedJob | None = None, *, fast: bool = False) -> str:
        return f"{job and job.body} {fast}"

    handlers: list[Callable[..., Any]] = [optional, lambda *jobs: len(jobs), print, max]
    for topic, handler in zip("abcd", handlers, strict=True):
        worker.on(topic, handler)
    worker.on("e", partial(named_argument, to="Ann"))
    worker.on("f", injected(named_argument))
    assert testing.run(worker, "f") == Finished()
    assert testing.run(worker, "a", "b") == Finished("b False")
    assert testing.run(worker, "b") == Finished("1")
    assert testing.run(worker, "e") == Finished()
