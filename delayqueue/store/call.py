"""A call of a script in a bucket: what it is called by, the words that are sent, and what is made of the answer.

A verb is called by a function of a library, which the store keeps built, else by a script, built at each call. Stores
have functions from Redis 7.0 on. A library goes to a store's disk and to its replicas like data, so it is there after a
restart and after a failover; a call that finds none loads it. If the store refuses functions (it is older, its user may
not load them, its memory is full), the verbs run as scripts.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import hiredis
from redis.exceptions import (
    NoPermissionError,
    NoScriptError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)

from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.domain.job import CALLS, Reserved, State
from delayqueue.metrics import SCRIPT_SECONDS, Histogram, Metrics
from delayqueue.store.connection import Wait
from delayqueue.store.durability import Durability, Requirement
from delayqueue.store.record import ended_view, held_by, live_view, reserved_job, text
from delayqueue.store.scripts import Script, ScriptHead, Scripts
from delayqueue.store.server import Server
from delayqueue.store.servers import Servers
from delayqueue.store.types import NO_CHANGE, SOON_MS, Arrivals, Change, JobView, Reservation

if TYPE_CHECKING:
    from asyncio import Future

    from delayqueue.store.bucket import Bucket

log = logging.getLogger(__name__)

# What happened to jobs of a topic: an event of metrics.EVENTS, the topic, and the number and times of count_event.
JobEvent = tuple[str, str, int, Sequence[int]]


class Reply(NamedTuple):
    """A script's answer. The script's head says what `results` and `times` hold."""

    results: list[Any]  # one for each item, or what this verb has to tell
    times: Sequence[int]  # ms, for each item; () if the verb has none
    looked: int  # how many items are done
    change: Change
    events: Sequence[JobEvent]
    now_ms: int  # the store's time


def or_none(number: int) -> int | None:
    """A script's number; None if it is negative."""
    return None if number < 0 else number


def read_reply(answer: list[Any]) -> Reply:
    """Parse the answer of any script (end_call in _call.lua)."""
    now_ms, next_due_ms, looked, results, times, topics = answer[:6]
    times_at = 6 + results
    ready_at = times_at + times
    events_at = ready_at + 2 * topics
    change = NO_CHANGE
    if topics:
        ready: Arrivals = [
            (text(answer[i]) or CALLS, answer[i + 1]) for i in range(ready_at, events_at, 2)
        ]
        change = Change(ready, or_none(next_due_ms))
    elif next_due_ms >= 0:
        change = Change([], next_due_ms, next_due_ms < SOON_MS)
    events: list[JobEvent] = []
    for at in range(events_at, len(answer), 4):
        event, topic, number, times_ms = answer[at : at + 4]
        events.append((event.decode(), text(topic), number, times_ms or ()))
    return Reply(answer[6:times_at], answer[times_at:ready_at], looked, change, events, now_ms)


def reserved_jobs(found: Sequence[Any], nonce: str, revision: str | None) -> list[Reserved]:
    """The jobs that `pop` reserved with this nonce, at this revision, given as id, record, attempt, ..."""
    jobs = []
    for at in range(0, len(found), 3):
        job_id, record, attempt = found[at : at + 3]
        job = reserved_job(text(job_id), record, attempt, nonce)
        job.revision = revision
        jobs.append(job)
    return jobs


def reservation(job_id: str, nonce: str, result: int | Sequence[Any]) -> Reservation:
    """The result of `reserve` for a job."""
    if isinstance(result, int):
        return Reservation(result, None)
    code, record, attempt, was_buried = result
    job = reserved_job(job_id, record, attempt, nonce)
    job.was_buried = was_buried == 1
    return Reservation(code, job)


def settings_of(written: bytes) -> dict[str, Any]:
    """A topic's settings; {} if they are unreadable."""
    with suppress(ValueError, RecursionError):
        settings: Any = json.loads(written)
        return settings if isinstance(settings, dict) else {}
    return {}


def job_view(
    job_id: str, state: bytes, record: bytes, run: bytes = b"", worker: bytes = b"", *held: bytes
) -> JobView | None:
    """All about a job, from its state, record, run, the worker that holds it, and what holds it up, if anything does.

    None if those are unreadable.
    """
    with suppress(ValueError):
        if state == b"ended":
            return ended_view(job_id, record)
        found = live_view(job_id, State(state.decode()), record, run)
        found.worker = text(worker)
        found.held_by = held_by(*held) if held else None
        return found
    return None


REFUSED_S: Final = 60.0  # before a server that refused functions is asked for them again
FCALL, EVALSHA = "FCALL", "EVALSHA"
NOT_FOUND: Final = "Function not found"
UNKNOWN_COMMAND: Final = "unknown command"
ALREADY_THERE: Final = "already exists"


async def remove_old_functions(servers: Servers, scripts: Scripts) -> None:
    """Remove the libraries of other versions of this program. A server that still uses one loads it again."""
    for redis in servers.clients().values():
        with suppress(RedisError):  # it has no functions, or is unavailable
            for library in await redis.function_list(f"{scripts.family}*"):
                name = library[1].decode()  # after the word library_name
                if name != scripts.library.name:
                    log.info("removing the functions of another version: %s", name)
                    await redis.function_delete(name)


async def load_missing(
    function: "Function", words: tuple[str, str], error: Exception, server: Server
) -> bool:
    """Load what a call that began with these words did not find; returns False if it failed for another reason.

    Where functions are refused, the next call is one of a script. Raises RedisError if the store does not answer.
    """
    if isinstance(error, NoScriptError):
        source, sha = function.script
        await server.loads.do(sha, partial(server.redis.script_load, source))
    elif str(error) == NOT_FOUND:
        library = function.scripts.library
        try:
            await server.loads.do(library.name, partial(server.redis.function_load, library.source))
        except ResponseError as refusal:
            if ALREADY_THERE not in str(refusal):
                _note_refusal(server, refusal)
    elif words[0] == FCALL and (
        # the server is too old for functions, or our user may not call them
        isinstance(error, NoPermissionError) or str(error).startswith(UNKNOWN_COMMAND)
    ):
        _note_refusal(server, error)
    else:
        return False
    return True


def _note_refusal(server: Server, error: Exception) -> None:
    if not server.refused_until_s and not isinstance(error, ReadOnlyError):  # which is said anyway
        log.warning("the store refuses functions, so each call costs it more: %s", error)
    server.refused_until_s = monotonic() + REFUSED_S


@dataclass(frozen=True, eq=False, kw_only=True)
class Function:
    """A verb as it is called: what all calls of it have in common, by its head and the settings."""

    scripts: Scripts
    head: ScriptHead
    words: tuple[str, str]  # with which a call of it as a function begins
    wait: Wait | None
    requirements: Sequence[Requirement]
    seconds: Histogram  # that calls take

    @cached_property
    def script(self) -> Script:
        """The verb as a script, for servers that refuse functions."""
        return self.scripts.script(self.head.name)


def functions_by_name(
    scripts: Scripts, durability: Durability, metrics: Metrics
) -> Mapping[str, Function]:
    """All verbs."""
    return {
        name: Function(
            scripts=scripts,
            head=head,
            words=(FCALL, scripts.function(name)),
            wait=durability.wait(head),
            requirements=durability.requirements(head),
            seconds=metrics.histogram(SCRIPT_SECONDS, name),
        )
        for name, head in scripts.verbs.items()
    }


class ScriptCall:
    """A call, which may be sent several times (bucket.py says when).

    `end` is called once, with the reply, or the error: Unavailable, UnicodeEncodeError if no bytes stand for an
    argument, TypeError if it is neither text, bytes nor a number.
    """

    __slots__ = (
        "_args",
        "_keys",
        "asked_s",
        "bucket",
        "end",
        "function",
        "generation",
        "made_s",
        "packed",
        "repeats",
        "server",
        "until_s",
        "waiter",
        "words",
    )

    def __init__(  # everything that is known of a call
        self,
        function: Function,
        bucket: "Bucket",
        args: Sequence[Any],
        scope: Scope,
        end: Callable[[Reply | Exception], None],
        waiter: "Future[Any] | None" = None,
    ) -> None:
        """Made now, it may be done for `answer_s` of the store under its present layout (`begin` in _call.lua).

        If `waiter` is done before the call is sent, it is not sent.
        """
        self.function: Final = function
        self.bucket: Final = bucket
        self.generation: Final = bucket.buckets.layout.generation
        self.made_s: Final = monotonic()
        self.until_s: Final = self.made_s + bucket.answer_s
        self.repeats = 0
        self.server: Server | None = None  # of the last attempt
        self.waiter = waiter
        self._args = args
        self.end = end
        self._keys = bucket.names
        if scope is not EVERYWHERE:
            entries = json.dumps(scope.entries, ensure_ascii=False)
            self._keys = [*self._keys, bucket.keys.tag + entries]

    def attempt(self, server: Server) -> None:
        """Send it to this server."""
        function = self.function
        self.server = server
        self.asked_s = now_s = monotonic()
        if server.refused_until_s <= now_s:
            self.words = function.words
        else:
            self.words = EVALSHA, function.script.sha
        until_ms = server.clock.at_ms(self.until_s)
        control = f"{self.generation} {self.bucket.sender} {1 if function.wait else 0}"
        try:
            self.packed: bytes = hiredis.pack_command(
                (*self.words, len(self._keys), *self._keys, *self._args, until_ms, control)
            )
        except (UnicodeEncodeError, TypeError) as error:
            self.end(error)
        else:
            pipeline = server.pipelines.get(function.wait) or server.pipeline(function.wait)
            pipeline.send(self)

    def answered(self, answer: Any) -> None:
        """Take the script's answer: its results, the store's time, and events for the metrics."""
        function, bucket = self.function, self.bucket
        metrics = bucket.metrics
        try:
            reply = read_reply(answer)
            if self.server is not None:
                self.server.clock.heard(reply.now_ms, self.asked_s)
            if bucket.ailment is not None:
                bucket.answered(writes=function.head.writes)
            function.seconds.observe(monotonic() - self.made_s)
            for event in reply.events:
                metrics.count_event(*event)
            if bucket.failpoint:
                bucket.failpoint.reach(f"{function.head.name}.after")
        except Exception as error:  # an answer that cannot be read
            self.end(error)
        else:
            self.end(reply)

    def failed(self, error: Exception) -> None:
        """Take an attempt's error: the call may be attempted again."""
        self.bucket.recover(self, error)
