"""A handler whose work is not done when it returns has not succeeded."""

from collections.abc import AsyncIterator, Callable, Iterator
from datetime import date
from functools import partial, wraps
from typing import Any, Final
from unittest.mock import AsyncMock, MagicMock, Mock

import pytest

from delayqueue import Worker, testing
from delayqueue.worker.handlers import check_done


def generator(_: object) -> Iterator[int]:
    yield 1


async def async_generator(_: object) -> AsyncIterator[int]:
    yield 1


class Object:
    def __call__(self, _: object) -> Iterator[int]:
        yield 1

    def method(self, _: object) -> Iterator[int]:
        yield 1


async def coroutine() -> None:
    pass


async def forgets_an_await(_: object) -> Any:
    return coroutine()


def passing_on(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def inner(job: object) -> Any:
        return function(job)

    return inner


instance = Object()
method = instance.method
bound = partial(partial(generator), 1)

REFUSED: Final = ["generator", "async_generator", "instance", "method", "bound"]
UNDONE: Final = {
    "generator": passing_on(generator),
    "async_generator": passing_on(async_generator),
    "coroutine": forgets_an_await,
    "function": lambda _: coroutine,
    "method": lambda _: instance.method,
    "builtin_function_or_method": lambda _: print,
    "partial": lambda _: partial(print, 1),
    "map": lambda _: map(str, [1]),
}
DONE: Final = [None, "", "sent", 5, 2.5, True, b"x", [1], {"a": (1,)}, {1}, ValueError("x"), Object]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ({"order": "1001", "paid": None, "é": [True]}, '{"order":"1001","paid":null,"é":[true]}'),
        ([1, "a", (2.5,)], '[1,"a",[2.5]]'),
        ({"on": date(2026, 1, 31)}, '{"on":"2026-01-31"}'),
        ({("a", 1): 2}, "{('a', 1): 2}"),
        ({"a": float("nan")}, "{'a': nan}"),
        (True, "True"),
        (2.5, "2.5"),
    ],
)
async def test_what_json_has_is_json_in_the_message(returned: object, message: str) -> None:
    """Another program reads it: the next handler, or who asks with /get."""
    worker = Worker()
    worker.on("t")(lambda _: returned)
    assert (await testing.arun(worker, "t")).message == message


@pytest.mark.parametrize("name", REFUSED)
def test_a_handler_with_a_yield_is_refused_before_it_is_called(name: str) -> None:
    with pytest.raises(ValueError, match=r": has a yield: "):
        Worker().on("t")(globals()[name])


@pytest.mark.parametrize("kind", UNDONE)
def test_a_worker_fails_a_job_whose_handler_returned_work_to_do(kind: str) -> None:
    worker = Worker()
    worker.on("t")(UNDONE[kind])
    queue = testing.Queue(worker)
    queue.push("t", [1], id="j")
    (ran,) = queue.advance()
    assert ran.verdict.message.startswith(f"TypeError: it returned a {kind}, which nothing runs")


def test_any_value_is_a_result() -> None:
    for value in (*DONE, Mock(), MagicMock(), AsyncMock()):
        check_done(value)
