"""Reserving a job, also for a connection that watches more tubes than one poll can take."""

import asyncio
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, Mock, patch

import pytest

from delayqueue.beanstalk.answers import Answer, Closing, Pending
from delayqueue.beanstalk.reserving import (
    FOREVER_S,
    MOST_TUBES,
    _reserved,
    pop_of_many,
    reserve,
)
from delayqueue.beanstalk.server import BeanstalkServer
from delayqueue.beanstalk.session import Session
from delayqueue.beanstalk.tube_access import TubeAccess
from delayqueue.domain.access import Scope
from delayqueue.domain.job import Reserved
from delayqueue.engine.polls import Polls
from delayqueue.errors import TooMany, Unavailable
from tests.engine.shelves import Shelves
from tests.waiting import until

TUBES = tuple(f"tube-{n}" for n in range(2 * MOST_TUBES + 1))
FIRST, LAST = TUBES[0], TUBES[-1]
LONG_S = 30.0


@pytest.fixture
async def shelves() -> Shelves:
    return Shelves()


@pytest.fixture
async def polls(shelves: Shelves) -> Polls:
    return Polls(shelves, max_polls=4)


def popping(polls: Polls, wait_s: float = LONG_S) -> asyncio.Task[list[Reserved]]:
    return asyncio.create_task(pop_of_many(polls, TUBES, wait_s))


@pytest.mark.parametrize("wait_s", [0, LONG_S])
async def test_a_job_of_the_last_tube_is_found(
    shelves: Shelves, polls: Polls, wait_s: float
) -> None:
    shelves.put(LAST, "a")
    [job] = await popping(polls, wait_s)
    assert (job.id, job.topic) == ("a", LAST)
    assert polls.waiting == 0


async def test_without_a_wait_nothing_is_an_answer(polls: Polls) -> None:
    assert await popping(polls, 0) == []


async def test_of_jobs_that_come_at_the_same_time_one_is_taken_and_the_others_go_back(
    shelves: Shelves, polls: Polls
) -> None:
    shelves.put(FIRST, "a")
    shelves.put(LAST, "b")
    [job] = await popping(polls)
    await polls.close()
    assert [*shelves.held] == [job.id]
    assert polls.waiting == 0


@pytest.mark.parametrize("steps", range(8))
async def test_who_is_gone_takes_nothing(shelves: Shelves, polls: Polls, steps: int) -> None:
    gone = popping(polls)
    await until(lambda: polls.waiting == 3)
    shelves.put(FIRST, "a")
    shelves.put(LAST, "b")
    polls.matcher.notify(0, FIRST, 1)
    polls.matcher.notify(0, LAST, 1)
    for _ in range(steps):
        await asyncio.sleep(0)
    gone.cancel()
    [took] = await asyncio.gather(gone, return_exceptions=True)
    await polls.close()
    assert len(shelves.held) == (0 if isinstance(took, BaseException) else 1)
    assert polls.waiting == 0


async def test_of_polls_that_are_too_many_none_is_left(polls: Polls) -> None:
    first = popping(polls)
    await until(lambda: polls.waiting == 3)
    with pytest.raises(TooMany):
        await popping(polls)
    assert polls.waiting == 3
    first.cancel()


async def test_a_store_that_fails_ends_the_wait(shelves: Shelves, polls: Polls) -> None:
    shelves.down.add(0)
    with pytest.raises(Unavailable):
        await popping(polls)
    assert polls.waiting == 0


class Reserving:
    """A server, and the wait of a connection that watches some tubes."""

    def __init__(self, polls: Polls, tubes: Iterable[str]) -> None:
        queue: Any = SimpleNamespace(within=lambda _: SimpleNamespace(polls=polls), store=Mock())
        self.server = BeanstalkServer(queue, access("*"))
        self.server.loop = Mock(wraps=self.server.loop, time=Mock(return_value=100.0))
        self.session = Session(self.server.tubes)
        for tube in tubes:
            self.session.watch(tube)
        self.server.opened(self.session)

    def begin(self, *timeout_s: float) -> None:
        answer = reserve(self.server, self.session, *timeout_s)
        assert isinstance(answer, Pending)
        self.wait_for(answer)

    def wait_for(self, answer: Pending) -> None:
        self.answer, self.session.leave = answer, answer.leave

    async def ended(self) -> Answer:
        """What comes of the wait, which has ended."""
        await asyncio.wait([self.answer.call])
        self.session.leave = None
        return self.answer.read(None)


def access(*topics: str) -> TubeAccess:
    return TubeAccess(loopback_only=True, scope=Scope.of(topics), most_bytes=1000)


@pytest.mark.parametrize(
    ("given", "left_s"),
    [((), FOREVER_S), ((LONG_S,), LONG_S - 10), ((5,), 0), ((0,), 0)],
    ids=["for ever", "for a time", "for less", "not at all"],
)
async def test_who_gets_a_job_that_a_reload_has_put_out_of_reach_waits_for_the_rest_of_the_time(
    shelves: Shelves, polls: Polls, given: tuple[float, ...], left_s: float
) -> None:
    waits = Reserving(polls, [FIRST, LAST])
    shelves.put(FIRST, "a")
    waits.begin(*given)
    await waits.answer.call
    waits.server.use(access(LAST))
    cast("Mock", waits.server.loop.time).return_value += 10
    with patch.object(polls, "begin", wraps=polls.begin) as begin:
        assert isinstance(await waits.ended(), Pending)
    begin.assert_called_once_with((LAST,), 1, left_s, by_priority=True)
    await polls.close()
    assert shelves.held == {}


@pytest.mark.parametrize("watched", [(FIRST, LAST), TUBES], ids=["two tubes", "many tubes"])
async def test_a_reload_that_changes_what_is_reached_lets_a_wait_begin_anew(
    polls: Polls, watched: tuple[str, ...]
) -> None:
    waits = Reserving(polls, watched)
    waits.begin()
    for reached in ([LAST], [FIRST, LAST], ["tube-*"]):
        waits.server.use(access(*reached))
        with patch.object(polls, "begin", wraps=polls.begin) as begin:
            again = await waits.ended()
            assert isinstance(again, Pending)
            await until(lambda: begin.called)
        waits.wait_for(again)
        tubes = [tube for call in begin.call_args_list for tube in call.args[0]]
        assert tubes == [tube for tube in watched if "tube-*" in reached or tube in reached]
    waits.session.leave = Mock()
    waits.server.use(access("tube-*"))
    waits.session.leave.assert_not_called()
    await polls.close()


async def test_who_is_gone_does_not_wait_anew(polls: Polls) -> None:
    waits = Reserving(polls, [FIRST])
    waits.begin()
    waits.server.use(access(LAST))
    waits.server.closed(waits.session, None)
    assert await waits.ended() == b"TIMED_OUT\r\n"
    assert polls.waiting == 0


async def test_a_client_whose_reserve_is_refused_does_not_wait() -> None:
    """There are as many polls as may be: `current-waiting` does not count it."""
    waits = Reserving(Mock(begin=Mock(side_effect=TooMany)), [])
    with pytest.raises(TooMany):
        waits.begin()
    assert waits.session.leave is None


@pytest.mark.parametrize(("number", "error"), [(None, Unavailable), (7, Closing)])
async def test_a_job_of_which_no_client_is_told_is_given_back(
    number: int | None, error: type[Exception]
) -> None:
    """Since its id has no number yet and the store is away, or since the client is."""
    given_back = list[Reserved]()
    ids = Mock(find=Mock(return_value=number), number_of=AsyncMock(side_effect=Unavailable))
    jobs = SimpleNamespace(polls=SimpleNamespace(requeue=given_back.extend))
    server = cast("BeanstalkServer", SimpleNamespace(ids=ids, jobs=jobs))
    job = Reserved("t", "order-7", b"", 1, "", 0, 1000, None)
    with pytest.raises(error):
        await cast("Any", _reserved(server, Mock(is_closed=True), job))
    assert given_back == [job]
