"""Reserves jobs for a connection: of its watched tubes, or by number."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from delayqueue.beanstalk.answers import TIMED_OUT, Answer, Closing, Pending
from delayqueue.beanstalk.server import BeanstalkServer
from delayqueue.beanstalk.session import MARGIN_S, Session
from delayqueue.domain.job import Reserved
from delayqueue.engine.polls import Polls
from delayqueue.engine.wait_queue import Poll

if TYPE_CHECKING:
    from collections.abc import Callable

FOREVER_S: Final = 2.0**31
MOST_TUBES: Final = 500  # per poll: about 3 ms of the store's time


def reserve(server: BeanstalkServer, session: Session, timeout_s: float = FOREVER_S) -> Answer:
    """Reserve a job of the watched tubes; waits, but not into the last second of the TTR of a job that it holds."""
    session.is_worker = True
    now_s = server.loop.time()
    until_s = session.deadline(now_s) - MARGIN_S
    wait_s = 0 if session.has_ended else max(0, min(timeout_s, until_s - now_s))
    scope, watched = server.access.scope, session.watched
    tubes = watched if server.allows_all else tuple(filter(server.allows, watched))
    call: asyncio.Future[Any]
    take: Callable[[], list[Reserved]]  # what the call has reserved
    leave: Callable[[], object]
    if len(tubes) <= MOST_TUBES:
        poll = server.jobs.polls.begin(tubes, 1, wait_s, by_priority=True)
        call, take, leave = poll.future, poll.take, partial(server.jobs.polls.leave, poll)
    else:
        many = pop_of_many(server.jobs.polls, tubes, wait_s)
        call = task = server.loop.create_task(many, name="many tubes")
        take, leave = lambda: [] if task.cancelled() else task.result(), task.cancel

    def read(_: object) -> Answer:
        jobs = take()
        if server.access.scope != scope and not session.is_closed:  # a reload has changed the tubes
            server.jobs.polls.requeue(jobs)
            passed_s = 0 if timeout_s == FOREVER_S else server.loop.time() - now_s
            return reserve(server, session, timeout_s - passed_s)
        if jobs:
            return _reserved(server, session, jobs[0])
        if server.loop.time() >= until_s:
            return b"DEADLINE_SOON\r\n"
        if server.is_draining and timeout_s == FOREVER_S:
            raise Closing
        return TIMED_OUT

    return Pending(call, read, leave if wait_s else None)


def reserve_job(server: BeanstalkServer, session: Session, number: int) -> Answer:
    """Reserve the job with this number, although it may be delayed or buried."""
    session.is_worker = True
    call = server.jobs.reserve(server.id_of(session, number))
    return Pending(call, partial(_reserved, server, session))


def _reserved(server: BeanstalkServer, session: Session, job: Reserved) -> Answer:
    """The answer with a job that is now reserved for the client."""
    number = server.ids.find(job.id)
    return (
        _numbered(server, session, job) if number is None else _told(server, session, number, job)
    )


async def _numbered(server: BeanstalkServer, session: Session, job: Reserved) -> bytes:
    """The answer with a job whose id has no number yet."""
    try:
        number = await server.ids.number_of(job.id)
    except BaseException:
        server.jobs.polls.requeue((job,))
        raise
    return _told(server, session, number, job)


def _told(server: BeanstalkServer, session: Session, number: int, job: Reserved) -> bytes:
    if session.is_closed:
        server.jobs.polls.requeue((job,))
        raise Closing
    body = job.body
    session.hold(number, job, server.loop.time())
    return b"RESERVED %d %d\r\n%b\r\n" % (number, len(body), body)


async def pop_of_many(polls: Polls, tubes: tuple[str, ...], wait_s: float) -> list[Reserved]:
    """The most urgent job of some of these tubes, [] if none comes in time: a poll for all would take too long.

    Raises what Polls.pop raises; a cancelled caller takes nothing.
    """
    pieces = [tubes[at : at + MOST_TUBES] for at in range(0, len(tubes), MOST_TUBES)]
    if wait_s:
        return await _first(polls, pieces, wait_s)
    for piece in pieces:
        if found := await polls.pop(piece, 1, 0, by_priority=True):
            return found
    return []


async def _first(polls: Polls, pieces: list[tuple[str, ...]], wait_s: float) -> list[Reserved]:
    """What the first poll to be answered brings; jobs that others bring at the same time are put back."""
    begun = list[Poll]()
    try:
        begun.extend(polls.begin(piece, 1, wait_s, by_priority=True) for piece in pieces)
        waiting = {poll.future for poll in begun}
        while waiting:
            ended, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for poll in (each for each in begun if each.future in ended):
                poll.future.result()  # raises if the store has failed
                if found := poll.take():
                    return found
        return []
    finally:
        for poll in begun:
            polls.leave(poll)
