"""One connection: reads commands, carries them out one after the other, and answers in order."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any, Final, cast

from delayqueue.beanstalk.commands import OUT_OF_MEMORY, PUT, Command, Refusal
from delayqueue.beanstalk.door import Door
from delayqueue.beanstalk.parser import Parser
from delayqueue.beanstalk.session import Held, Session
from delayqueue.beanstalk.verbs import (
    AT_ONCE,
    DELETED,
    LATER,
    NOT_FOUND,
    TIMED_OUT,
    Closing,
    delete_former,
)
from delayqueue.domain.body import body_of
from delayqueue.domain.job import MAX_DELAY_S, IfExists, Job
from delayqueue.errors import Code, QueueError, TooMany, Unavailable
from delayqueue.net.group import Group
from delayqueue.net.limits import Limits
from delayqueue.net.loopback import is_loopback
from delayqueue.net.unanswered import SMALL_BYTES

log = logging.getLogger(__name__)

MAX_AHEAD_BYTES: Final = 64 * 1024  # that wait for their turn; then nothing more is read
LONG_BYTES: Final = 16 * 1024  # a longer answer is sent before the next command is carried out
MOST_AT_ONCE: Final = 500  # commands of one kind that go together
MAX_TTR_S: Final = 60 * 86_400  # a job's record has no room for a longer one

GOODBYE_S: Final = 0.1  # for sending the end of a TLS connection; its client need not answer it

INTERNAL_ERROR: Final = b"INTERNAL_ERROR\r\n"
DRAINING: Final = b"DRAINING\r\n"
TASK: Final = "beanstalk command"


class Connection(asyncio.Protocol):
    """One client. While a command is under way, further commands wait."""

    __slots__ = (
        "_ahead",
        "_answer_bytes",
        "_connections",
        "_counts",
        "_door",
        "_is_busy",
        "_is_full",
        "_is_stalled",
        "_limits",
        "_parser",
        "_putting_bytes",
        "_task",
        "_transport",
        "session",
    )

    _transport: asyncio.Transport

    def __init__(self, door: Door, limits: Limits, connections: Group["Connection"]) -> None:
        self._door = door
        self._limits = limits
        self._connections = connections  # all connections
        self._parser = Parser(door.access.most_bytes)
        self._ahead: Command | Refusal | None = None  # read, but not carried out
        self._answer_bytes = 0  # of the last write
        self._counts = False  # it holds so much that Unanswered knows it
        self._putting_bytes = 0  # of the jobs that are being put
        self._is_busy = False  # a command is under way
        self._is_full = False  # so much has arrived that reading is paused
        self._is_stalled = False  # so much is unsent that no command is started
        self._task: asyncio.Task[None] | None = None  # carries out a command
        self.session = Session(door.tubes)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept a client."""
        self._transport = cast("asyncio.Transport", transport)
        self._limits.connected.came()
        self._limits.unread.watch(self._transport)
        if self._door.access.loopback_only and not is_loopback(_host(transport)):
            log.debug("refused a client from another machine: protected mode")
            self._is_busy = True
            self._transport.abort()
        self._door.came(self.session)
        self._connections.add(self)

    def data_received(self, data: bytes) -> None:
        """Take part of a command, or one, or several."""
        self._parser.feed(data)
        if not self._is_busy and not self._is_stalled:
            self._go_on()
        elif self._parser.pending_bytes > MAX_AHEAD_BYTES and not self._is_full:
            self._is_full = True
            self._transport.pause_reading()
        if self._counts or self._parser.held_bytes + self._putting_bytes > SMALL_BYTES:
            self._count()

    def eof_received(self) -> bool:
        """The client sends nothing more: it no longer waits for jobs, and gets the answers to what it has sent."""
        self.session.has_ended = True
        if self._is_tls:  # TLS connections cannot be half closed
            return False
        self._stop_waiting()
        return not self.is_idle

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002  # the protocol's signature
        """The client is gone: the jobs that it had reserved are put back."""
        self.session.has_ended = True
        self._stop_waiting()
        self._limits.connected.left()
        self._limits.unanswered.gone(self)
        self._limits.unread.flows(self._transport)
        self._door.left(self.session, self.session.latest if self._is_stalled else None)
        self._connections.discard(self)

    def pause_writing(self) -> None:
        """The client reads more slowly than it is answered."""
        self._is_stalled = True
        self._limits.unread.stalled(self._transport, self._answer_bytes)

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._is_stalled = False
        self._limits.unread.flows(self._transport)
        if not self._is_busy:
            self._go_on()

    @property
    def _is_tls(self) -> bool:
        return self._transport.get_extra_info("sslcontext") is not None

    @property
    def is_idle(self) -> bool:
        """Whether no command is under way and nothing is left to send."""
        return not self._is_busy and not self._is_stalled

    def give_up(self) -> bool:
        """Refuse the put that has not arrived as a whole; a client that sends far ahead is disconnected."""
        if self._parser.give_up():
            self._count()
            return True
        if self._parser.pending_bytes <= SMALL_BYTES:
            return False
        self._limits.unanswered.gone(self)
        self.abort()
        return True

    def close(self) -> None:
        """Send what is written, then close."""
        self._is_busy = True
        self._transport.close()
        if self._is_tls and not self._is_stalled:
            self._door.loop.call_later(GOODBYE_S, self._transport.abort)

    def abort(self) -> None:
        """Close at once."""
        if self._task is not None:
            self._task.cancel()
        self._transport.abort()

    def _count(self) -> None:
        """Say how much of unanswered commands is here."""
        held_bytes = self._parser.held_bytes + self._putting_bytes
        self._counts = held_bytes > SMALL_BYTES
        self._limits.unanswered.holds(self, held_bytes)

    def _stop_waiting(self) -> None:
        if self.session.is_waiting and self._task is not None:
            self._task.cancel()

    def _answered(self, answer: bytes) -> None:
        """Send the answer of a command that was under way."""
        self._is_busy = False
        if self.session.is_closed or self._transport.is_closing():
            return
        self._write(answer)
        if not self._is_stalled:
            self._go_on()
        if self._counts:
            self._count()

    def _go_on(self) -> None:
        """Carry out commands, until one takes time."""
        answers: list[bytes] = []
        for _ in range(MOST_AT_ONCE):
            command = self._next()
            if command is None or not self._do(command, answers):
                break
            if answers and len(answers[-1]) > LONG_BYTES:
                self._let_others()
                break
        else:
            self._let_others()
        if answers:
            self._write(b"".join(answers))
        if self._is_full and self._parser.pending_bytes <= MAX_AHEAD_BYTES:
            self._is_full = False
            self._transport.resume_reading()
        if self.is_idle and (self.session.has_ended or self._door.is_draining):
            self.close()

    def _let_others(self) -> None:
        """Let others have their turn before the next command; wait, too, until what is written can be sent."""
        self._is_busy = True
        self._door.loop.call_soon(self._answered, b"")

    def _next(self) -> Command | Refusal | None:
        command, self._ahead = self._ahead, None
        return command or self._parser.next()

    def _write(self, data: bytes) -> None:
        self._answer_bytes = len(data)
        self._transport.write(data)

    def _do(self, command: Command | Refusal, answers: list[bytes]) -> bool:
        """Carry out a command, or start it; returns whether it is done."""
        door = self._door
        if isinstance(command, Refusal):
            door.count(command.counted)
            answers.append(command.answer)
            return True
        name, args = command
        if name == PUT:
            return self._put(command, answers)
        door.count(name)
        if (verb := AT_ONCE.get(name)) is not None:
            answers.append(verb(door, self.session, *args))
            return True
        if name == "quit":
            self._door.loop.call_soon(self.close)
            self._is_busy = True
        elif name == "delete" and (held := self.session.take(args[0])) is not None:
            self._delete(args[0], held)
        else:
            self._start(LATER[name](door, self.session, *args))
        return False

    def _put(self, command: Command | Refusal | None, answers: list[bytes]) -> bool:
        """Put this job and the puts that follow it."""
        door, tube = self._door, self.session.used
        self.session.is_producer = True
        refusal = self._refusal_to_put()
        jobs: list[Job] = []
        while isinstance(command, Command) and command.name == PUT and len(jobs) < MOST_AT_ONCE:
            door.count(PUT)
            if refusal:
                answers.append(refusal)
            else:
                jobs.append(_job(tube.name, *command.args))
            command = self._parser.next()
        self._ahead = command
        if jobs:
            self._is_busy = True
            self._putting_bytes = sum(len(job.body) for job in jobs)
            door.put.add(jobs, self._was_put)
        return not jobs

    def _refusal_to_put(self) -> bytes:
        if self._door.is_draining:
            return DRAINING
        return b"" if self._door.allows(self.session.used.name) else NOT_FOUND

    def _was_put(self, numbers: Sequence[int | Exception]) -> None:
        self._putting_bytes = 0
        self._answered(b"".join(map(_inserted, numbers)))

    def _delete(self, number: int, held: Held) -> None:
        """Delete this job and those of the deletes that follow, as long as this connection holds them."""
        numbers, jobs = [number], [held]
        while len(jobs) < MOST_AT_ONCE:
            command = self._ahead = self._parser.next()
            if not isinstance(command, Command) or command.name != "delete":
                break
            next_held = self.session.take(command.args[0])
            if next_held is None:
                break
            self._door.count("delete")
            numbers.append(command.args[0])
            jobs.append(next_held)
            self._ahead = None
        self._is_busy = True
        self._door.finish.add(jobs, partial(self._were_ended, numbers, jobs))

    def _were_ended(
        self, numbers: list[int], jobs: list[Held], codes: Sequence[int | Exception]
    ) -> None:
        if any(codes):
            self._start(self._look_after(numbers, jobs, codes))
            return
        for held in jobs:
            self._door.tubes.count(held.job.topic).deletes += 1
        self._answered(DELETED * len(jobs))

    async def _look_after(
        self, numbers: list[int], jobs: list[Held], codes: Sequence[int | Exception]
    ) -> bytes:
        """The answers if not all jobs could be deleted.

        A job whose TTR has expired can be ready, and is deleted as such.
        """
        answers = []
        for number, held, code in zip(numbers, jobs, codes, strict=True):
            if isinstance(code, Exception) or code == Code.UNAVAILABLE:
                self._door.keep(self.session, number, held)
                answers.append(answer_to(code if isinstance(code, Exception) else Unavailable()))
            elif code == Code.OK:
                answers.append(DELETED)
            else:
                deleting = delete_former(self._door, self.session, number, held)
                answers.append(await _or_error(deleting))
        return b"".join(answers)

    def _start(self, doing: Coroutine[Any, Any, bytes]) -> None:
        self._is_busy = True
        self._task = self._door.loop.create_task(self._run(doing), name=TASK)
        self._task.add_done_callback(
            lambda _: doing.close()
        )  # it has not begun if it was cancelled at once

    async def _run(self, doing: Coroutine[Any, Any, bytes]) -> None:
        try:
            answer = await _or_error(doing)
        except Closing:
            self.close()
        except asyncio.CancelledError:  # it was waiting
            if not self.session.has_ended:
                raise
            self._answered(TIMED_OUT)
        else:
            self._answered(answer)


async def _or_error(doing: Coroutine[Any, Any, bytes]) -> bytes:
    """The answer, or the answer to what was raised."""
    try:
        return await doing
    except Closing:
        raise
    except Exception as error:
        if not isinstance(error, QueueError):
            log.exception("command failed")
        return answer_to(error)


def answer_to(error: Exception) -> bytes:
    """The answer to an error."""
    if isinstance(error, (Unavailable, TooMany)):
        return OUT_OF_MEMORY
    return NOT_FOUND if isinstance(error, QueueError) else INTERNAL_ERROR


def _inserted(number: int | Exception) -> bytes:
    return answer_to(number) if isinstance(number, Exception) else b"INSERTED %d\r\n" % number


def _job(topic: str, priority: int, delay_s: int, ttr_s: int, body: bytes) -> Job:
    return Job(
        topic=topic,
        id="",  # gets a number
        body=body_of(body),
        ttr_ms=max(1, min(ttr_s, MAX_TTR_S)) * 1000,
        delay_ms=min(delay_s, MAX_DELAY_S) * 1000,
        if_exists=IfExists.FAIL,
        priority=priority,
    )


def _host(transport: asyncio.BaseTransport) -> str | None:
    peer = transport.get_extra_info("peername")
    return peer[0] if peer else None
