"""One connection: reads commands, carries them out one after the other, and answers in order."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, cast

from delayqueue.beanstalk.answers import Answer, Closing, Pending, answer_to
from delayqueue.beanstalk.commands import DELETE, PUT, Command, Refusal
from delayqueue.beanstalk.parser import Parser
from delayqueue.beanstalk.putting import job_to_put, put, refusal_to_put
from delayqueue.beanstalk.server import BeanstalkServer
from delayqueue.beanstalk.session import Held, Session
from delayqueue.beanstalk.verbs import VERBS, delete_held
from delayqueue.net.limits import ClientLimits
from delayqueue.net.loopback import is_loopback
from delayqueue.net.unanswered import SMALL_BYTES

log = logging.getLogger(__name__)

MAX_AHEAD_BYTES: Final = 64 * 1024  # that wait for their turn; then nothing more is read
LONG_BYTES: Final = 16 * 1024  # a longer answer is sent before the next command is carried out
MOST_AT_ONCE: Final = 500  # commands of one kind that go together

GOODBYE_S: Final = 0.1  # for sending the end of a TLS connection; its client need not answer it


class Connection(asyncio.Protocol):
    """The connection of one client. While a command is under way, further commands wait."""

    __slots__ = (
        "_ahead",
        "_answer_bytes",
        "_is_busy",
        "_is_counted",
        "_is_full",
        "_is_stalled",
        "_limits",
        "_parser",
        "_putting_bytes",
        "_server",
        "_transport",
        "session",
    )

    _transport: asyncio.Transport

    def __init__(self, server: BeanstalkServer, limits: ClientLimits) -> None:
        self._server = server
        self._limits = limits
        self._parser = Parser(server.access.most_bytes)
        self._ahead: Command | Refusal | None = None  # read, but not carried out
        self._answer_bytes = 0  # of the last write
        self._is_counted = False  # it holds so much that Unanswered counts it
        self._putting_bytes = 0  # of the jobs that are being put
        self._is_busy = False  # a command is under way
        self._is_full = False  # so much has arrived that reading is paused
        self._is_stalled = False  # so much is unsent that no command is started
        self.session = Session(server.tubes)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept a client."""
        self._transport = cast("asyncio.Transport", transport)
        self._limits.connections.opened(self)
        self._limits.unread.watch(self._transport)
        if not is_loopback(_host(transport)):
            self._server.remote.add(self._transport)
            if self._server.access.loopback_only:
                log.debug("refused a client from another machine: protected mode")
                self._is_busy = True
                self._transport.abort()
        self._server.opened(self.session)

    def data_received(self, data: bytes) -> None:
        """Take part of a command, or one, or several."""
        held_bytes = self._parser.feed(data)
        if not self._is_busy and not self._is_stalled:
            self._go_on()
        elif self._parser.pending_bytes > MAX_AHEAD_BYTES and not self._is_full:
            self._is_full = True
            self._transport.pause_reading()
        if self._is_counted or held_bytes + self._putting_bytes > SMALL_BYTES:
            self._count()

    def eof_received(self) -> bool:
        """The client sends nothing more: it no longer waits for jobs, and gets the answers to what it has sent."""
        self.session.has_ended = True
        if self._is_tls:  # TLS connections cannot be half closed
            return False
        self.session.stop_waiting()
        return not self._is_idle

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002  # the protocol's signature
        """The client is gone: the jobs that it had reserved are put back."""
        self.session.has_ended = True
        self.session.stop_waiting()
        self._server.remote.discard(self._transport)
        self._limits.unanswered.forget(self)
        self._limits.unread.forget(self._transport)
        self._server.closed(self.session, self.session.latest if self._is_stalled else None)
        self._limits.connections.closed(self)

    def pause_writing(self) -> None:
        """The client reads more slowly than it is answered."""
        self._is_stalled = True
        self._limits.unread.stalled(self._transport, self._answer_bytes)

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._is_stalled = False
        self._limits.unread.forget(self._transport)
        if not self._is_busy:
            self._go_on()

    @property
    def _is_tls(self) -> bool:
        return self._transport.get_extra_info("sslcontext") is not None

    @property
    def _is_idle(self) -> bool:
        """Whether no command is under way and nothing is left to send."""
        return not self._is_busy and not self._is_stalled

    def give_up(self) -> bool:
        """Refuse the put that has not arrived as a whole; a client that sends far ahead is disconnected."""
        if self._parser.give_up():
            self._count()
            return True
        if self._parser.pending_bytes <= SMALL_BYTES:
            return False
        self._limits.unanswered.forget(self)
        self.abort()
        return True

    def close_if_idle(self) -> bool:
        """Close the connection, unless a command is under way or something is left to send. Returns whether it did."""
        if is_idle := self._is_idle:
            self.close()
        return is_idle

    def close(self) -> None:
        """Send what is written, then close."""
        self._is_busy = True
        self._transport.close()
        if self._is_tls and not self._is_stalled:
            self._server.loop.call_later(GOODBYE_S, self._transport.abort)

    def abort(self) -> None:
        """Close at once."""
        self.session.stop_waiting()
        self._transport.abort()

    def _count(self) -> None:
        """Report how many bytes of unanswered commands are held."""
        held_bytes = self._parser.held_bytes + self._putting_bytes
        self._is_counted = held_bytes > SMALL_BYTES
        self._limits.unanswered.note_held(self, held_bytes)

    def _answered(self, answer: bytes) -> None:
        """Send the answer of a command that was under way."""
        self._is_busy = False
        self._putting_bytes = 0
        if self.session.is_closed or self._transport.is_closing():
            return
        self._write(answer)
        if not self._is_stalled:
            self._go_on()
        if self._is_counted:
            self._count()

    def _go_on(self) -> None:
        """Carry out commands, until one takes time."""
        answers: list[bytes] = []
        for _ in range(MOST_AT_ONCE):
            command = self._ahead or self._parser.next()
            if command is None:
                break
            self._ahead = None
            answer = self._do(command)
            if not isinstance(answer, bytes):
                self._wait_for(answer)
                break
            answers.append(answer)
            if len(answer) > LONG_BYTES:
                self._yield_turn()
                break
        else:
            self._yield_turn()
        if answers:
            self._write(b"".join(answers))
        if self._is_full and self._parser.pending_bytes <= MAX_AHEAD_BYTES:
            self._is_full = False
            self._transport.resume_reading()
        if (self.session.has_ended or self._server.is_draining) and self._is_idle:
            self.close()

    def _yield_turn(self) -> None:
        """Let others have their turn before the next command; wait, too, until what is written can be sent."""
        self._is_busy = True
        self._server.loop.call_soon(self._answered, b"")

    def _write(self, data: bytes) -> None:
        self._answer_bytes = len(data)
        self._transport.write(data)

    def _do(self, command: Command | Refusal) -> Answer:
        """Carry out a command, or start it."""
        if isinstance(command, Refusal):
            if command.counted is not None:
                self._server.counts[command.counted] += 1
            return command.answer
        name, args = command
        self._server.counts[name] += 1
        try:
            if name == PUT:
                return self._put(*args)
            if name == DELETE and (held := self.session.take(args[0])) is not None:
                return self._delete(args[0], held)
            return VERBS[name](self._server, self.session, *args)
        except Exception as error:
            return answer_to(error)

    def _put(self, *numbers_and_body: Any) -> Answer:
        """Put this job and those of the puts that follow it."""
        tube = self.session.used.name
        self.session.is_producer = True
        if refusal := refusal_to_put(self._server, tube):
            return refusal
        jobs = [job_to_put(tube, *numbers_and_body)]
        while len(jobs) < MOST_AT_ONCE and (command := self._one_more(PUT)) is not None:
            jobs.append(job_to_put(tube, *command.args))
        self._server.counts[PUT] += len(jobs) - 1
        self._putting_bytes = sum([len(job.body) for job in jobs])
        return put(self._server, jobs)

    def _delete(self, number: int, held: Held) -> Answer:
        """Delete this job and those of the deletes that follow it, as long as this connection holds them."""
        jobs = {number: held}
        while len(jobs) < MOST_AT_ONCE and (command := self._one_more(DELETE)) is not None:
            next_held = self.session.take(command.args[0])
            if next_held is None:
                self._ahead = command
                break
            jobs[command.args[0]] = next_held
        self._server.counts[DELETE] += len(jobs) - 1
        return delete_held(self._server, self.session, jobs)

    def _one_more(self, name: str) -> Command | None:
        """The next command, if it has this name, too."""
        command = self._parser.next()
        if isinstance(command, Command) and command.name == name:
            return command
        self._ahead = command
        return None

    def _wait_for(self, answer: Pending | Coroutine[Any, Any, bytes]) -> None:
        """Answer once the call has ended; until then, further commands wait."""
        if not isinstance(answer, Pending):
            task = self._server.loop.create_task(answer, name="beanstalk command")
            answer = Pending(task, bytes)
        self._is_busy, self.session.leave = True, answer.leave
        self._server.calls.add(answer.call)
        answer.call.add_done_callback(partial(self._ended, answer.read, answer.failed))

    def _ended(
        self,
        read: Callable[[Any], Answer],
        failed: Callable[[Exception], bytes],
        call: asyncio.Future[Any],
    ) -> None:
        """Answer with what a call has returned or raised (`Pending`)."""
        self._server.calls.discard(call)
        self.session.leave = None
        try:
            # cancelled: its wait has ended
            answer = read(None if call.cancelled() else call.result())
        except Closing:
            self.close()
            return
        except Exception as error:
            del call  # it holds the error, whose traceback holds this frame
            answer = failed(error)
        if isinstance(answer, bytes):
            self._answered(answer)
        else:
            self._wait_for(answer)


def _host(transport: asyncio.BaseTransport) -> str | None:
    peer = transport.get_extra_info("peername")
    return peer[0] if peer else None
