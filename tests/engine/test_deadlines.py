"""Polls without an answer give up at their deadlines, with one timer for all."""

import asyncio
from random import Random

from delayqueue.engine.deadlines import SPARE, Deadlines
from delayqueue.engine.wait_queue import Poll
from delayqueue.errors import Unavailable
from tests.waiting import until


def expire(poll: Poll) -> None:
    poll.answer([])


async def test_polls_give_up_in_the_order_of_their_deadlines_and_not_before() -> None:
    loop, deadlines, given_up = asyncio.get_running_loop(), Deadlines(expire), []
    waits_s = [0.001 * n for n in range(1, 101)]
    Random(7).shuffle(waits_s)
    for number, wait_s in enumerate(waits_s):
        poll = Poll(number, 1, wait_s)

        def note(_: object, poll: Poll = poll) -> None:
            given_up.append(poll.deadline)
            assert loop.time() >= poll.deadline

        poll.future.add_done_callback(note)
        deadlines.add(poll, number + 1)
    await until(lambda: len(given_up) == len(waits_s))
    assert given_up == sorted(given_up)


async def test_a_poll_that_came_last_may_be_the_first_to_give_up() -> None:
    deadlines = Deadlines(expire)
    late, early = Poll(1, 1, 3600), Poll(2, 1, 0.01)
    deadlines.add(late, 1)
    deadlines.add(early, 2)
    await until(early.future.done)
    assert not late.future.done()
    deadlines.close()


async def test_a_poll_that_was_answered_stays_answered() -> None:
    deadlines = Deadlines(expire)
    answered, other = Poll(1, 1, 0.01), Poll(2, 1, 0.02)
    deadlines.add(answered, 1)
    deadlines.add(other, 2)
    answered.fail(Unavailable.default)
    await until(other.future.done)
    assert answered.future.exception() is not None


async def test_answered_polls_are_not_kept_until_their_deadlines() -> None:
    """A busy server answers millions of polls within the time that each may wait."""
    deadlines = Deadlines(expire)
    for number in range(20 * SPARE):
        poll = Poll(number, 1, 180)
        deadlines.add(poll, 1)
        poll.answer([])
    assert len(deadlines) <= SPARE + 3
    deadlines.close()
    assert len(deadlines) == 0
