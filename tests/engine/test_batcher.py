"""Requests that share a call: they share no errors, and no results."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import pytest

from delayqueue.domain.access import EVERYWHERE
from delayqueue.errors import Code, Unavailable
from delayqueue.store import store as batcher
from delayqueue.store.buckets import Layout
from delayqueue.store.call import Reply, ScriptCall
from delayqueue.store.store import Batcher, StoreRequest
from delayqueue.store.types import NO_CHANGE
from delayqueue.store.verbs import GET, Verb
from tests.engine.shelves import Shelves
from tests.store.bucket import Bucket, job
from tests.store.conftest import connect

BAD = b"caf\xe9".decode("utf-8", "surrogateescape")
MIB: Final = 1 << 20


class Answers:
    """Stands in for the bucket of a Batcher: the test answers. `calls` has the items of each, and its answer."""

    def __init__(self, verb: Verb[Any, Any]) -> None:
        self.calls: list[tuple[list[Any], asyncio.Future[Reply]]] = []
        self._verb = verb
        bucket = Shelves().bucket(0)
        bucket.send = self._send  # type: ignore[method-assign]
        self.buckets = bucket.buckets
        self.batcher = Batcher(verb, EVERYWHERE, bucket)

    def _send(self, call: ScriptCall) -> None:
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(partial(self._end, call))
        self.calls.append((list(call._args), answer))

    def _end(self, call: ScriptCall, answer: asyncio.Future[Reply]) -> None:
        try:
            call.end(answer.result())
        except Unavailable as error:
            call.end(error)

    def ask(self, *items: Any) -> asyncio.Future[Any]:
        request = StoreRequest[Any, Any](items, self._verb.lost, list)
        self.batcher.submit(request)
        return request

    def answer(self, number: int, count: int | None = None) -> None:
        """Let that call do the first `count` of its items: the result of each is the item itself."""
        items, answered = self.calls[number]
        answered.set_result(Reply(items[:count], (), 0, NO_CHANGE, (), 0))

    @property
    def items(self) -> list[list[Any]]:
        return [items for items, _ in self.calls]


def codes(_: Sequence[Any], reply: Reply) -> Sequence[Any]:
    return reply.results


ECHO: Final = Verb[Any, Any]("get", list, codes, lost=int(Code.UNAVAILABLE))
SINGLE: Final = Verb[Any, Any]("get", list, codes)
WEIGHED: Final = Verb[Any, Any]("get", list, codes, large_part=bytes)


async def turn() -> None:
    """Let the loop make the calls, and deal out the answers."""
    for _ in range(3):
        await asyncio.sleep(0)


async def test_what_cannot_be_written_costs_its_own_request_only(valkey_server: Any) -> None:
    async with connect(valkey_server) as redis:
        bucket = Bucket.over(redis)
        store = bucket.store
        ids = [f"id-{n}" for n in range(10)]
        await bucket.push(*map(job, ids))
        asked = [*ids[:3], BAD, *ids[3:], BAD]
        answers = await asyncio.gather(
            *(store.run(GET, [job_id], EVERYWHERE) for job_id in asked), return_exceptions=True
        )
    for job_id, answer in zip(asked, answers, strict=True):
        if job_id == BAD:
            assert isinstance(answer, UnicodeEncodeError)
        else:
            assert not isinstance(answer, BaseException)
            assert [getattr(view, "id", None) for view in answer] == [job_id]


async def sizes_of_calls(*requests: list[bytes]) -> list[list[int]]:
    """The bytes of each item, by calls."""
    answers = Answers(WEIGHED)
    asked = [answers.ask(*items) for items in requests]
    await turn()
    for number in range(len(requests)):
        if number < len(answers.calls):
            answers.answer(number)
            await turn()
    await asyncio.gather(*asked)
    return [[len(item) for item in items] for items in answers.items]


async def test_requests_go_together_up_to_so_many_bytes() -> None:
    assert await sizes_of_calls(*[[bytes(MIB)]] * 10) == [[MIB] * 4, [MIB] * 4, [MIB] * 2]
    large = [bytes(MIB)] * 7  # one request goes into one call, however large it is
    assert await sizes_of_calls([b"x"], large, [b"x"]) == [[1], [MIB] * 7, [1]]


async def test_a_request_waits_for_no_call_in_flight_while_another_may_begin() -> None:
    answers = Answers(ECHO)
    submitted = []
    for pair in ([0, 1], [2, 3], [4, 5]):
        submitted += [answers.ask(item) for item in pair]
        await turn()
    assert answers.items == [[0, 1], [2, 3]]
    answers.answer(1)  # they need not end in order
    assert await asyncio.gather(*submitted[2:4]) == [[2], [3]]
    assert answers.items[2:] == [[4, 5]]
    answers.answer(0)
    answers.answer(2)
    assert await asyncio.gather(*submitted) == [[item] for item in range(6)]


async def test_what_a_call_did_not_get_to_goes_first_with_the_next_one() -> None:
    answers = Answers(ECHO)
    first, second = answers.ask(1, 2, 3), answers.ask(4, 5, 6, 7)
    await turn()
    third = answers.ask(8)
    await turn()
    fourth = answers.ask(9)
    answers.answer(0, 2)
    await turn()
    assert answers.items == [[1, 2, 3, 4, 5, 6, 7], [8], [3, 4, 5]]  # one more than it did
    answers.answer(2, 1)
    await turn()
    assert first.result() == [1, 2, 3]
    answers.answer(3)
    await turn()
    assert answers.items[3:] == [[4, 5], [6, 7, 9]]
    answers.answer(4)
    answers.answer(1)
    assert [await second, await third, await fourth] == [[4, 5, 6, 7], [8], [9]]


async def test_a_call_is_given_few_more_items_than_one_can_do() -> None:
    answers = Answers(ECHO)
    requests = [answers.ask(*range(100)) for _ in range(5)]
    await turn()
    number = 0
    while number < len(answers.calls):
        answers.answer(number, 80)  # whatever it was given
        await turn()
        number += 1
    assert all(request.done() for request in requests)
    first, *others = map(len, answers.items)
    assert first == 500
    assert max(others) == 91
    assert sum(others) <= 420 * 91 / 80


async def test_a_call_is_given_more_again_once_one_can_do_it() -> None:
    answers = Answers(ECHO)
    asked = answers.ask(*range(100))
    await turn()
    answers.answer(0, 8)
    for number in range(1, 5):
        await turn()
        answers.answer(number)
    assert await asked == list(range(100))
    assert list(map(len, answers.items)) == [100, 10, 20, 40, 22]


@pytest.mark.parametrize("verb", [ECHO, SINGLE])
async def test_items_after_those_that_were_done_are_lost_with_a_failing_call(
    verb: Verb[Any, Any],
) -> None:
    answers = Answers(verb)
    begun = answers.ask(1, 2, 3)
    await turn()
    answers.answer(0, 1)
    await turn()
    answers.calls[1][1].set_exception(Unavailable())
    await turn()
    if verb.lost is None:
        assert isinstance(begun.exception(), Unavailable)
    else:
        assert begun.result() == [1, verb.lost, verb.lost]


async def test_who_has_waited_long_behind_a_failing_call_fails_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = Answers(SINGLE)
    asked = [answers.ask(0)]
    await turn()
    asked.append(answers.ask(1))
    await turn()
    waiting = answers.ask(2)
    monkeypatch.setattr(batcher, "PATIENCE_S", -1)
    answers.calls[0][1].set_exception(Unavailable())
    await turn()
    assert isinstance(asked[0].exception(), Unavailable)
    assert isinstance(waiting.exception(), Unavailable)
    answers.answer(1)
    assert await asked[1] == [1]


async def test_who_no_longer_waits_takes_nothing_from_the_others() -> None:
    answers = Answers(ECHO)
    gone, other = answers.ask(1, 2), answers.ask(3)
    await turn()
    gone.cancel()
    answers.answer(0, 1)
    await turn()
    answers.answer(1)
    assert await other == [3]


async def test_an_answer_that_cannot_be_read_fails_its_requests_and_no_later_ones() -> None:
    numbers = Verb[Any, int]("get", list, lambda _, reply: [int(one) for one in reply.results])
    answers = Answers(numbers)
    asked = answers.ask("not a number")
    await turn()
    answers.answer(0)
    with pytest.raises(ValueError, match="not a number"):
        await asked
    later = answers.ask("2")
    await turn()
    answers.answer(1)
    assert await later == [2]


async def test_what_waits_can_be_told_to_fail() -> None:
    """What is under way gets its answer."""
    answers = Answers(ECHO)
    in_flight = answers.ask(1)
    await turn()
    waiting = answers.ask(2)
    answers.batcher.fail_waiting(Unavailable())
    with pytest.raises(Unavailable):
        await waiting
    answers.answer(0)
    assert await in_flight == [1]


@pytest.mark.parametrize("verb", [ECHO, SINGLE])
async def test_what_a_call_did_not_get_to_is_not_done_once_its_bucket_may_be_another_one(
    verb: Verb[Any, Any],
) -> None:
    answers = Answers(verb)
    begun, whole = answers.ask(1, 2, 3), answers.ask(4)
    await turn()
    answers.buckets.adopt(Layout(generation=1))
    answers.answer(0, 1)
    await turn()
    assert len(answers.calls) == 1
    assert isinstance(whole.exception(), Unavailable)
    if verb.lost is None:
        assert isinstance(begun.exception(), Unavailable)
    else:
        assert begun.result() == [1, verb.lost, verb.lost]


async def test_ten_thousand_items_of_one_request_are_all_answered(valkey_server: Any) -> None:
    async with connect(valkey_server) as redis:
        bucket = Bucket.over(redis)
        ids = [f"{n}" for n in range(10_000)]
        views = await bucket.store.run(GET, ids, EVERYWHERE)
    assert views == [None] * 10_000
