"""Carries out each command, except `put`, `quit`, and `delete` of a job that the connection holds (connection.py)."""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final

from delayqueue.beanstalk.commands import OUT_OF_MEMORY
from delayqueue.beanstalk.door import Door
from delayqueue.beanstalk.many_tubes import pop_one
from delayqueue.beanstalk.session import MARGIN_S, Held, Session
from delayqueue.beanstalk.stats import BURIED as BURIED_BY
from delayqueue.beanstalk.stats import RELEASED as RELEASED_BY
from delayqueue.beanstalk.stats import job_stats, server_stats, tube_stats, yaml_list
from delayqueue.domain.body import raw_body
from delayqueue.domain.job import LIVE_STATES, MAX_DELAY_S, JobView, Reserved, State
from delayqueue.engine.queue import raise_for
from delayqueue.errors import NoSuchJob, StaleReceipt, Unavailable, WrongState
from delayqueue.metrics import REFUSED
from delayqueue.store.topics import TopicView

AtOnce = Callable[..., bytes]
Later = Callable[..., Coroutine[Any, Any, bytes]]

NOT_FOUND: Final = b"NOT_FOUND\r\n"
TIMED_OUT: Final = b"TIMED_OUT\r\n"
DEADLINE_SOON: Final = b"DEADLINE_SOON\r\n"
DELETED: Final = b"DELETED\r\n"
BURIED: Final = b"BURIED\r\n"
KICKED: Final = b"KICKED\r\n"

FOREVER_S: Final = 2.0**31


class Closing(Exception):
    """The server is stopping: the connection ends without an answer."""


def use(door: Door, session: Session, name: str) -> bytes:
    if not door.allows(name):
        return NOT_FOUND
    session.use(name)
    return b"USING %b\r\n" % name.encode()


def watch(door: Door, session: Session, name: str) -> bytes:
    if not door.allows(name):
        return NOT_FOUND
    count = session.watch(name)
    if not count:
        door.queue.metrics.count(REFUSED, "watched")
        return OUT_OF_MEMORY
    return b"WATCHING %d\r\n" % count


def ignore(_: Door, session: Session, name: str) -> bytes:
    count = session.ignore(name)
    return b"WATCHING %d\r\n" % count if count else b"NOT_IGNORED\r\n"


def list_tube_used(_: Door, session: Session) -> bytes:
    return b"USING %b\r\n" % session.used.name.encode()


def list_tubes_watched(_: Door, session: Session) -> bytes:
    return yaml_list(session.watched)


async def reserve(door: Door, session: Session, timeout_s: float = FOREVER_S) -> bytes:
    """Reserve a job of the watched tubes; waits, but not into the last second of the TTR of a job that it holds."""
    session.is_worker = True
    now = door.loop.time()
    until = session.deadline(now) - MARGIN_S
    wait_s = 0 if session.has_ended else max(0, min(timeout_s, until - now))
    session.is_waiting = wait_s > 0
    try:
        tubes = door.reachable(session.watched)
        jobs = await pop_one(door.queue, tubes, wait_s)
    finally:
        session.is_waiting = False
    if jobs:
        return await _reserved(door, session, jobs[0])
    if door.loop.time() >= until:
        return DEADLINE_SOON
    if door.is_draining and timeout_s == FOREVER_S:
        raise Closing
    return TIMED_OUT


async def reserve_job(door: Door, session: Session, number: int) -> bytes:
    session.is_worker = True
    return await _reserved(
        door, session, await door.queue.reserve(_id(door, session, number), door.scope)
    )


async def _reserved(door: Door, session: Session, job: Reserved) -> bytes:
    """Tell the client of a job that is now reserved for it."""
    try:
        number = await door.ids.number_of(job.id)
    except BaseException:
        door.queue.requeue((job,))
        raise
    if session.is_closed:
        door.queue.requeue((job,))
        raise Closing
    body = raw_body(job.body)
    session.hold(number, job, door.loop.time())
    return b"RESERVED %d %d\r\n%b\r\n" % (number, len(body), body)


async def delete(door: Door, session: Session, number: int) -> bytes:
    """Delete a job that this connection does not hold, and nobody else."""
    held = session.take_former(number)
    if held is not None:
        return await delete_former(door, session, number, held)
    view = await _view(door, session, number)
    await door.queue.discard(view.id, door.scope)
    return _deleted(door, view.topic)


async def delete_former(door: Door, session: Session, number: int, held: Held) -> bytes:
    """Delete a job that a connection had reserved, unless one that was pushed meanwhile has taken its place."""
    try:
        await door.queue.discard(held.job.id, door.scope, held.job.created_ms)
    except (Unavailable, WrongState):
        session.lose(number, held)
        raise
    return _deleted(door, held.job.topic)


def _deleted(door: Door, topic: str) -> bytes:
    door.tubes.count(topic).deletes += 1
    return DELETED


@contextmanager
def _given_up(door: Door, session: Session, number: int) -> Iterator[Reserved]:
    """A job that the connection gives up in the block. Raises NoSuchJob if it does not hold it.

    If the store does not carry that out, the connection keeps the job; if the reservation is over, it may delete it.
    """
    held = session.take(number)
    if held is None:
        raise NoSuchJob
    try:
        yield held.job
    except Unavailable:
        door.keep(session, number, held)
        raise
    except (NoSuchJob, StaleReceipt):
        session.lose(number, held)
        raise


async def release(door: Door, session: Session, number: int, priority: int, delay_s: int) -> bytes:
    delay_ms = min(delay_s, MAX_DELAY_S) * 1000
    with _given_up(door, session, number) as job:
        await door.queue.release(
            job.id, job.receipt, delay_ms, RELEASED_BY, scope=door.scope, priority=priority
        )
    return b"RELEASED\r\n"


async def bury(door: Door, session: Session, number: int, priority: int) -> bytes:
    with _given_up(door, session, number) as job:
        await door.queue.bury(job.id, job.receipt, BURIED_BY, door.scope, priority=priority)
    return BURIED


async def touch(door: Door, session: Session, number: int) -> bytes:
    held = session.held(number)
    if held is None:
        return NOT_FOUND
    now = door.loop.time()
    try:
        await door.queue.touch(held.job.id, held.job.receipt, None, door.scope)
    except (NoSuchJob, StaleReceipt):  # its TTR has expired, or somebody has ended it
        session.lose(number, held)
        raise
    session.touched(held, now + held.job.ttr_ms / 1000)
    return b"TOUCHED\r\n"


async def kick(door: Door, session: Session, most: int) -> bytes:
    """Kick buried jobs of the used tube; only if there are none, delayed ones."""
    name, kicked = session.used.name, 0
    for state in (State.BURIED, State.DELAYED):
        if most and not kicked and door.allows(name):
            kicked = await door.queue.topics.kick(name, state, most)
    return b"KICKED %d\r\n" % kicked


async def kick_job(door: Door, session: Session, number: int) -> bytes:
    [code] = await door.queue.kick([_id(door, session, number)], door.scope)
    raise_for(code)
    return KICKED


async def peek(door: Door, session: Session, number: int) -> bytes:
    return _found(number, await _view(door, session, number))


async def peek_ready(door: Door, session: Session) -> bytes:
    return await _peek_first(door, session, State.READY)


async def peek_delayed(door: Door, session: Session) -> bytes:
    return await _peek_first(door, session, State.DELAYED)


async def peek_buried(door: Door, session: Session) -> bytes:
    return await _peek_first(door, session, State.BURIED)


async def _peek_first(door: Door, session: Session, state: State) -> bytes:
    view = await door.queue.listings.first(session.used.name, state, door.scope)
    if view is None:
        return NOT_FOUND
    return _found(await door.ids.number_of(view.id), view)


def _found(number: int, view: JobView) -> bytes:
    body = raw_body(view.body)
    return b"FOUND %d %d\r\n%b\r\n" % (number, len(body), body)


async def stats_job(door: Door, session: Session, number: int) -> bytes:
    held = session.held(number)
    left_s = None if held is None else held.deadline - door.loop.time()
    return job_stats(number, await _view(door, session, number), left_s)


async def stats_tube(door: Door, _: Session, name: str) -> bytes:
    return tube_stats(door, await _existing(door, name))


async def stats(door: Door, _: Session) -> bytes:
    return server_stats(door, await door.topics())


async def list_tubes(door: Door, _: Session) -> bytes:
    return yaml_list(sorted(door.all_tubes(await door.topics())))


async def pause_tube(door: Door, _: Session, name: str, hold_s: int) -> bytes:
    await _existing(door, name)
    if hold_s:
        await door.queue.topics.pause(name, hold_s * 1000)
    else:
        await door.queue.topics.resume(name)
    tube = door.tubes.count(name)
    tube.pauses += 1
    tube.pause_s = hold_s
    return b"PAUSED\r\n"


async def _existing(door: Door, name: str) -> TopicView:
    """Raises NoSuchJob, which becomes NOT_FOUND, unless the tube exists and clients may reach it."""
    if door.allows(name):
        [topic] = await door.queue.topics.of([name])
        if name in door.all_tubes([topic]):
            return topic
    raise NoSuchJob


async def _view(door: Door, session: Session, number: int) -> JobView:
    """Raises NoSuchJob if it no longer exists."""
    [view] = await door.queue.get([_id(door, session, number)], door.scope)
    if view is None or view.state not in LIVE_STATES:
        raise NoSuchJob
    return view


def _id(door: Door, session: Session, number: int) -> str:
    held = session.held(number)
    return held.job.id if held is not None else door.ids.id_of(number)


# Commands that do not need the store, and those that do.
AT_ONCE: Final[dict[str, AtOnce]] = {
    "use": use,
    "watch": watch,
    "ignore": ignore,
    "list-tube-used": list_tube_used,
    "list-tubes-watched": list_tubes_watched,
}
LATER: Final[dict[str, Later]] = {
    "reserve": reserve,
    "reserve-with-timeout": reserve,
    "reserve-job": reserve_job,
    "delete": delete,
    "release": release,
    "bury": bury,
    "touch": touch,
    "kick": kick,
    "kick-job": kick_job,
    "peek": peek,
    "peek-ready": peek_ready,
    "peek-delayed": peek_delayed,
    "peek-buried": peek_buried,
    "stats-job": stats_job,
    "stats-tube": stats_tube,
    "stats": stats,
    "list-tubes": list_tubes,
    "pause-tube": pause_tube,
}
