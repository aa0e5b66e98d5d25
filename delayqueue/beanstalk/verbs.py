"""What each command does, except `put` and those that reserve a job."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from delayqueue.beanstalk.answers import DELETED, NOT_FOUND, Answer, Closing, Pending, answer_to
from delayqueue.beanstalk.commands import OUT_OF_MEMORY
from delayqueue.beanstalk.reserving import reserve, reserve_job
from delayqueue.beanstalk.server import BeanstalkServer
from delayqueue.beanstalk.session import Held, Session
from delayqueue.beanstalk.stats import (
    BURIED,
    RELEASED,
    job_stats,
    server_stats,
    tube_stats,
    yaml_list,
)
from delayqueue.domain.job import LIVE_STATES, MAX_DELAY_S, State
from delayqueue.engine.jobs import raise_for
from delayqueue.errors import Code, NoSuchJob, StaleReceipt, Unavailable, WrongState
from delayqueue.metrics import REFUSED
from delayqueue.store.census import TopicView
from delayqueue.store.types import JobView
from delayqueue.store.verbs import Ending


def use(server: BeanstalkServer, session: Session, name: str) -> bytes:
    if not server.allows(name):
        return NOT_FOUND
    session.use(name)
    return b"USING %b\r\n" % name.encode()


def watch(server: BeanstalkServer, session: Session, name: str) -> bytes:
    if not server.allows(name):
        return NOT_FOUND
    count = session.watch(name)
    if not count:
        server.queue.metrics.count(REFUSED, "watched")
        return OUT_OF_MEMORY
    return b"WATCHING %d\r\n" % count


def ignore(_: BeanstalkServer, session: Session, name: str) -> bytes:
    count = session.ignore(name)
    return b"WATCHING %d\r\n" % count if count else b"NOT_IGNORED\r\n"


def list_tube_used(_: BeanstalkServer, session: Session) -> bytes:
    return b"USING %b\r\n" % session.used.name.encode()


def list_tubes_watched(_: BeanstalkServer, session: Session) -> bytes:
    return yaml_list(session.watched)


def delete_held(server: BeanstalkServer, session: Session, held: dict[int, Held]) -> Answer:
    """Delete jobs that this connection has held until now, by number. The answer holds a line for each."""
    endings = [Ending(each.job.id, each.job.nonce, "") for each in held.values()]
    call = server.jobs.finish(endings)

    def failed(error: Exception) -> bytes:
        for number, each in held.items():
            server.keep(session, number, each)
        return answer_to(error) * len(held)

    return Pending(call, partial(_ended, server, session, held), failed=failed)


def _ended(
    server: BeanstalkServer, session: Session, held: dict[int, Held], codes: Sequence[int]
) -> Answer:
    if any(codes):
        return _delete_others(server, session, held, codes)
    for each in held.values():
        server.tubes.count(each.job.topic).deletes += 1
    return DELETED * len(held)


async def _delete_others(
    server: BeanstalkServer, session: Session, held: dict[int, Held], codes: Sequence[int]
) -> bytes:
    """The answers if not all jobs could be deleted.

    A job whose TTR has expired can be ready, and is deleted as such. The connection keeps a job that the store has not
    deleted, and one whose tube a reload has taken away: it is given back when the connection ends.
    """
    answers = []
    for (number, each), code in zip(held.items(), codes, strict=True):
        if code == Code.OK:
            answers.append(_deleted(server, each.job.topic))
        elif code == Code.UNAVAILABLE or not server.allows(each.job.topic):
            server.keep(session, number, each)
            answers.append(OUT_OF_MEMORY if code == Code.UNAVAILABLE else NOT_FOUND)
        else:
            try:
                answers.append(await _delete_former(server, session, number, each))
            except Exception as error:
                answers.append(answer_to(error))
    return b"".join(answers)


async def delete(server: BeanstalkServer, session: Session, number: int) -> bytes:
    """Delete a job that neither this connection nor another client holds."""
    held = session.take_former(number)
    if held is not None:
        return await _delete_former(server, session, number, held)
    view = await _view(server, session, number)
    await server.jobs.discard(view.id)
    return _deleted(server, view.topic)


async def _delete_former(
    server: BeanstalkServer, session: Session, number: int, held: Held
) -> bytes:
    """Delete a job that a connection had reserved, unless one that was pushed meanwhile has taken its place."""
    try:
        await server.jobs.discard(held.job.id, held.job.created_ms)
    except (Unavailable, WrongState):
        session.lose(number, held)
        raise
    return _deleted(server, held.job.topic)


def _deleted(server: BeanstalkServer, topic: str) -> bytes:
    server.tubes.count(topic).deletes += 1
    return DELETED


def release(
    server: BeanstalkServer, session: Session, number: int, priority: int, delay_s: int
) -> Answer:
    held = session.take(number)
    if held is None:
        return NOT_FOUND
    job, delay_ms = held.job, min(delay_s, MAX_DELAY_S) * 1000
    call = server.jobs.release(job.id, job.nonce, delay_ms, RELEASED, priority=priority)
    return _given_up(server, session, number, held, call, b"RELEASED\r\n")


def bury(server: BeanstalkServer, session: Session, number: int, priority: int) -> Answer:
    held = session.take(number)
    if held is None:
        return NOT_FOUND
    job = held.job
    call = server.jobs.bury(job.id, job.nonce, BURIED, priority=priority)
    return _given_up(server, session, number, held, call, b"BURIED\r\n")


def _given_up(
    server: BeanstalkServer,
    session: Session,
    number: int,
    held: Held,
    call: asyncio.Future[Any],
    answer: bytes,
) -> Answer:
    """The answer to a command that gives up a job.

    If the store has not carried that out, the connection keeps the job; if the reservation is over, it may delete it.
    """

    def failed(error: Exception) -> bytes:
        if isinstance(error, Unavailable) or not server.allows(held.job.topic):
            server.keep(session, number, held)
        return _lost(server, session, number, held, error)

    return Pending(call, lambda _: answer, failed=failed)


def _lost(
    server: BeanstalkServer, session: Session, number: int, held: Held, error: Exception
) -> bytes:
    """The answer to an error; if it says that a job's reservation is over, the connection may delete the job.

    An error about a tube that a reload has taken away does not say so: the connection keeps the job until it ends.
    """
    if isinstance(error, (NoSuchJob, StaleReceipt)) and server.allows(held.job.topic):
        session.lose(number, held)
    return answer_to(error)


def touch(server: BeanstalkServer, session: Session, number: int) -> Answer:
    held = session.held(number)
    if held is None:
        return NOT_FOUND
    now_s = server.loop.time()

    def read(_: object) -> bytes:
        session.touched(held, now_s + held.job.ttr_ms / 1000)
        return b"TOUCHED\r\n"

    call = server.jobs.touch(held.job.id, held.job.nonce, None)
    return Pending(call, read, failed=partial(_lost, server, session, number, held))


async def kick(server: BeanstalkServer, session: Session, most: int) -> bytes:
    """Kick buried jobs of the used tube; only if there are none, delayed ones."""
    name, kicked = session.used.name, 0
    for state in (State.BURIED, State.DELAYED):
        if not kicked and server.allows(name):
            kicked = await server.jobs.topics.kick(name, state, most)
    return b"KICKED %d\r\n" % kicked


async def kick_job(server: BeanstalkServer, session: Session, number: int) -> bytes:
    [code] = await server.jobs.kick([server.id_of(session, number)])
    raise_for(code)
    return b"KICKED\r\n"


async def peek(server: BeanstalkServer, session: Session, number: int) -> bytes:
    return _found(number, await _view(server, session, number))


async def peek_first(server: BeanstalkServer, session: Session, state: State) -> bytes:
    view = await server.jobs.listings.first(session.used.name, state)
    if view is None:
        return NOT_FOUND
    return _found(await server.ids.number_of(view.id), view)


def _found(number: int, view: JobView) -> bytes:
    return b"FOUND %d %d\r\n%b\r\n" % (number, len(view.body), view.body)


async def stats_job(server: BeanstalkServer, session: Session, number: int) -> bytes:
    held = session.held(number)
    left_s = None if held is None else held.deadline - server.loop.time()
    return job_stats(number, await _view(server, session, number), left_s)


async def stats_tube(server: BeanstalkServer, _: Session, name: str) -> bytes:
    return tube_stats(server, await _existing(server, name))


async def stats(server: BeanstalkServer, _: Session) -> bytes:
    return server_stats(server, await server.topics())


async def list_tubes(server: BeanstalkServer, _: Session) -> bytes:
    return yaml_list(sorted(server.all_tubes(await server.topics())))


async def pause_tube(server: BeanstalkServer, _: Session, name: str, hold_s: int) -> bytes:
    await _existing(server, name)
    await server.jobs.topics.pause(name, hold_s * 1000 if hold_s else None)
    tube = server.tubes.count(name)
    tube.pauses += 1
    tube.pause_s = hold_s
    return b"PAUSED\r\n"


async def end(_: BeanstalkServer, __: Session) -> bytes:
    raise Closing


async def _existing(server: BeanstalkServer, name: str) -> TopicView:
    """Raises NoSuchJob, which becomes NOT_FOUND, unless the tube exists and clients may reach it."""
    if server.allows(name):
        [topic] = await server.jobs.census.of([name])
        if name in server.all_tubes([topic]):
            return topic
    raise NoSuchJob


async def _view(server: BeanstalkServer, session: Session, number: int) -> JobView:
    """Raises NoSuchJob if it no longer exists."""
    [view] = await server.jobs.get([server.id_of(session, number)])
    if view is None or view.state not in LIVE_STATES:
        raise NoSuchJob
    return view


VERBS: Final[dict[str, Callable[..., Answer]]] = {
    "use": use,
    "watch": watch,
    "ignore": ignore,
    "list-tube-used": list_tube_used,
    "list-tubes-watched": list_tubes_watched,
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
    "peek-ready": partial(peek_first, state=State.READY),
    "peek-delayed": partial(peek_first, state=State.DELAYED),
    "peek-buried": partial(peek_first, state=State.BURIED),
    "stats-job": stats_job,
    "stats-tube": stats_tube,
    "stats": stats,
    "list-tubes": list_tubes,
    "pause-tube": pause_tube,
    "quit": end,
}
