"""A bucket: the calls of scripts in it, the requests that wait for one, and what a failed call means.

A call is sent at once; nothing is awaited while all is well. An attempt that was surely not done is repeated, within
the time that the call has:

- the bucket is on another server by now (MOVED): there;
- the server does not have the library or the script: once that is loaded;
- the server refuses functions: as a script;
- the call came too LATE by the server's clock, which was unknown or has jumped: with the time that the server told.

After everything else the caller gets Unavailable. STALELAYOUT says that the number of buckets is being changed, or was:
this process makes no more calls until it knows the layout in force. A silence, a broken connection, a refused WAIT or
too few replicas leave open whether it was done. The rest are refusals that a repetition would meet, too.

A call whose server is not known, or has been silent, or may not be as durable as configured, is prepared in the same
way: what is missing is found out before its first attempt.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from operator import methodcaller
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar

from redis.asyncio import Redis
from redis.exceptions import ClusterDownError, MovedError, RedisError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from delayqueue.domain import damage
from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.domain.job import CALLS, PolledTopic
from delayqueue.errors import Text, Unavailable
from delayqueue.metrics import REPAIRS, SCRIPT_ERRORS
from delayqueue.store.call import Reply, ScriptCall, load_missing, reserved_jobs
from delayqueue.store.connection import NO_ANSWER
from delayqueue.store.durability import TooFewReplicasError
from delayqueue.store.health import UNKNOWN, ailment
from delayqueue.store.record import text
from delayqueue.store.server import Server, told_by
from delayqueue.store.servers import REDIRECTED_IN_A_CIRCLE
from delayqueue.store.types import (
    Change,
    Demand,
    Finding,
    Inspected,
    Piece,
    Popped,
    Swept,
    Ticked,
    TimedOut,
)
from delayqueue.store.verbs import Verb, dump_rows, dump_topics
from delayqueue.tasks import batched

if TYPE_CHECKING:
    from delayqueue.store.store import Store

log = logging.getLogger(__name__)

TICK_LIMIT: Final = 2000  # the most jobs that one tick moves: 10,000 blocked the store for 13 ms
MOST_REPEATS: Final = 8  # servers can send a call in a circle, and functions be flushed under load
STALE: Final = "STALELAYOUT"  # the start of the scripts' error (_call.lua)
OUTDATED: Final = Text("桶数正在改变，或已改变", "the buckets are being changed, or were")
AWAY: Final = (
    "the store of bucket %d does not answer: its jobs wait in it, requests for them get code 6 (HTTP 503), "
    "and all goes on by itself when it answers again"
)

T = TypeVar("T")
Item = TypeVar("Item")
Result = TypeVar("Result")


class Bucket:
    """A bucket, numbered from 0 here; `keys.py` names them from 1.

    Every method that asks the store raises Unavailable if it does not answer or refuses. The scripts are atomic: a call
    without an answer has made all its changes or none, and makes none once its time is over (server.py). A script for
    many jobs may process only the first ones and answer for these: that limits how long it holds the store (_job.lua).
    """

    def __init__(self, number: int, store: "Store") -> None:
        self.number: Final = number
        self.keys: Final = store.buckets.keys[number]
        self.names: Final = [self.keys.tag, self.keys.queue_name]  # the keys that each call names
        # what calls share, whatever the bucket
        self.buckets: Final = store.buckets
        self.metrics: Final = store.metrics
        self.failpoint: Final = store.failpoint
        self.sender: Final = store.sender
        self.answer_s: Final = store.servers.answer_s
        self._store = store
        self._servers = store.servers
        self.scripts: Final = store.scripts
        self.ailment: Text | None = None  # why its last call failed
        self._cannot_write = False  # since then no call that writes has succeeded
        self._away_since_s: float | None = None  # monotonic: its server does not answer
        self._back_s = 0.0  # monotonic: it has answered again

    def run(
        self, script: str, args: Sequence[Any], scope: Scope = EVERYWHERE
    ) -> asyncio.Future[Reply]:
        """Call a script. The future has its Reply.

        Its exception is Unavailable, or UnicodeEncodeError if no bytes stand for an argument. If it is cancelled before
        the call is sent, nothing is sent.
        """
        return self.run_then(script, args, scope, _itself)

    def run_then(
        self, script: str, args: Sequence[Any], scope: Scope, read: Callable[[Reply], T]
    ) -> asyncio.Future[T]:
        """What `read` makes of the Reply that run() gives, or the error that it raises."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        end = partial(_settle, future, read)
        self.send(ScriptCall(self.scripts[script], self, args, scope, end, future))
        return future

    async def run_all(
        self, verb: Verb[Item, Result], items: Sequence[Item], scope: Scope = EVERYWHERE
    ) -> list[Result]:
        """The results of all items, in as many calls as that takes, of a verb of which nobody must be notified."""
        results: list[Result] = []
        while left := items[len(results) :]:
            results += verb.read(left, await self.run(verb.script, verb.pack(left), scope))
        return results

    def notify(self, change: Change) -> None:
        """Tell the store's listeners what a call has changed."""
        self._store.notify(self.number, change)

    def send(self, call: ScriptCall) -> None:
        """Send a call to the bucket's server."""
        if self._store.closed:
            call.end(Unavailable.because(self._store.closed))
            return
        function = call.function
        if self.failpoint:
            self.failpoint.reach(f"{function.head.name}.before")
        server = self._servers.known.get(self.keys.tag)
        if server is None or (
            function.requirements
            and not all(one.is_met(server.redis) for one in function.requirements)
        ):
            self.recover(call)
        else:
            call.attempt(server)

    async def ask(self, what: str, send: Callable[[Redis], Awaitable[T]]) -> T:
        """Ask the bucket's server with a command of redis-py that only reads; `what` names it in the log.

        Raises Unavailable if it does not answer or refuses.
        """
        if self._store.closed:
            raise Unavailable.because(self._store.closed)
        began_s = monotonic()
        try:
            answer = await self._servers.call(self.keys.tag, send)
        except RedisError as error:
            self._failed(what, error, began_s, writes=False)
            raise Unavailable.because(self._why(error)) from error
        self.answered(writes=False)
        return answer

    async def ask_key(self, name: str, command: str, *args: Any, **options: Any) -> Any:
        """What a command of redis-py reads from the bucket's key of this name. Raises Unavailable as ask() does."""
        key = self.keys.named(name)
        return await self.ask(name, methodcaller(command, key, *args, **options))

    def pop(self, demands: Sequence[Demand]) -> asyncio.Future[Popped]:
        """Reserve ready jobs: for each demand at most as many as it wants, [] if none is ready."""
        nonce = next(self._store.nonces)
        args: list[Any] = [nonce]
        for demand in demands:
            topics: Sequence[PolledTopic] = demand.topics
            if CALLS in topics:  # seldom
                topics = dump_topics(topics)
            args += (demand.wanted, int(demand.by_priority), len(topics), *topics)

        def read(reply: Reply) -> Popped:
            *found, written = reply.results
            revision: str | None = written.decode() or None
            jobs = map(partial(reserved_jobs, nonce=nonce, revision=revision), found)
            return Popped([*jobs], reply.looked, reply.change)

        return self.run_then("pop", args, EVERYWHERE, read)

    async def tick(self, limit: int = TICK_LIMIT) -> Ticked:
        """Move what is due."""
        reply = await self.run("tick", [limit])
        redelivered, in_all, expired, set_aside, buried, late = reply.results
        self._count_repairs("set_aside", set_aside)
        names = [(text(topic), text(job_id)) for topic, job_id in batched(buried, 2)]
        return Ticked(
            reply.change, redelivered, in_all, expired, set_aside, names, _timed_out(late)
        )

    async def sweep(self, cursor: int, topics: int, buried_retain_ms: int | None = None) -> Swept:
        """Clean up about `topics` topics, from the cursor on (0 at the start and at the end).

        A buried job is kept for `buried_retain_ms` (None = until somebody ends it) unless its topic says otherwise.
        """
        reply = await self.run("sweep", dump_rows([(cursor, topics, buried_retain_ms)]))
        cursor, ghosts, forgotten, ended, is_cut_short = map(int, reply.results)
        self._count_repairs("ghosts", ghosts)
        return Swept(cursor, ghosts, forgotten, ended, is_cut_short == 1)

    async def inspect(self, pieces: Sequence[Piece], limit: int, *, repair: bool) -> Inspected:
        """Check about `limit` entries of the pieces, the last piece first; with `repair`, damage is repaired."""
        args: list[Any] = [int(repair), limit]
        for piece in pieces:
            args += piece
        reply = await self.run("inspect" if repair else "examine", args)
        rest, raw_findings, suspects = reply.results
        findings = [
            Finding(kind.decode(), text(name), text(job_id), mended == b"1")
            for kind, name, job_id, mended in batched(raw_findings, 4)
        ]
        for finding in findings:
            if finding.repaired and finding.kind != damage.LOST:  # which is an event of its job
                self._count_repairs(finding.kind, 1)
        return Inspected(
            [Piece(name, cursor) for name, cursor in batched(rest, 2)],
            reply.looked,
            findings,
            [(topic, job_id) for topic, job_id in batched(suspects, 2)],
            reply.change,
            [(topic, number) for event, topic, number, _ in reply.events if event == damage.LOST],
        )

    def _count_repairs(self, kind: str, number: int) -> None:
        if number:
            self.metrics.count(REPAIRS, kind, by=number)

    async def ready_ids(self, topic: bytes, first: int, last: int) -> list[bytes]:
        """The ids in this range of a topic's ready list, including ghosts; -1 is the last position."""
        return (await self.run("ready_ids", [topic, first, last])).results

    def recover(self, call: ScriptCall, error: Exception | None = None) -> None:
        """Attempt a call again that has failed with this error; None = its first attempt needs preparation."""
        self._store.recoveries.start(self._recover(call, error))

    async def _recover(self, call: ScriptCall, error: Exception | None) -> None:
        try:
            server = await self._ready_server(call, error)
        except Exception as failure:
            call.end(failure)
            return
        if call.waiter is None or not call.waiter.done():
            call.attempt(server)

    async def _ready_server(self, call: ScriptCall, error: Exception | None) -> Server:
        """The server for the next attempt, ready for it. Raises Unavailable if no attempt is left."""
        if error is not None and str(error).startswith(STALE):
            self._store.be_outdated(call.generation)
            raise Unavailable.because(OUTDATED) from error
        try:
            return await self._next_server(call, error)
        except RedisError as failure:
            if call.waiter is None or not call.waiter.done():
                head = call.function.head
                self._failed(head.name, failure, call.made_s, writes=head.writes)
            raise Unavailable.because(self._why(failure)) from failure

    async def _next_server(self, call: ScriptCall, error: Exception | None) -> Server:
        """The server for the next attempt, within the time that the call has. Raises RedisError."""
        try:
            async with asyncio.timeout(call.until_s - monotonic()):
                return await self._prepare_until_done(call, error)
        except TimeoutError:
            silence = RedisTimeoutError(NO_ANSWER)
            if call.server is not None:
                await self._servers.learn(silence, call.server)
            raise silence from None

    async def _prepare_until_done(self, call: ScriptCall, error: Exception | None) -> Server:
        """Prepare the next attempt; again, if a server fails meanwhile. Raises RedisError if no server is known."""
        while True:
            try:
                return await self._prepare(call, error)
            except RedisError as failure:
                if call.server is None:
                    raise
                self._store.durability.learn(failure, call.server.redis)
                await self._servers.learn(failure, call.server)
                error = None  # and the call goes to where it is sent

    async def _prepare(self, call: ScriptCall, error: Exception | None) -> Server:
        """Find the server for the next attempt, and give it what the call needs.

        Raises RedisError: that of `call.server`; None = it is not known which one to ask.
        """
        if error is not None and call.server is not None:
            await self._remedy(call, error, call.server)
        call.server = None
        call.server = server = await self._servers.reach(self.keys.tag)
        for requirement in call.function.requirements:
            await requirement.require(server.redis)
        return server

    async def _remedy(self, call: ScriptCall, error: Exception, server: Server) -> None:
        """Remove the cause of the error, so that the next attempt can succeed. Raises the error if it cannot."""
        call.repeats += 1
        if call.repeats > MOST_REPEATS:
            raise (
                ClusterDownError(REDIRECTED_IN_A_CIRCLE) if isinstance(error, MovedError) else error
            )
        if (found_ms := told_by(error)) is not None:
            server.clock.heard(found_ms, call.asked_s)
            if monotonic() > call.until_s:
                raise error
        elif not await load_missing(call.function, call.words, error, server):
            raise error

    @property
    def is_away(self) -> bool:
        """Whether its server did not answer the last call."""
        return self._away_since_s is not None

    def answered(self, *, writes: bool) -> None:
        """A call, which may write, has succeeded. Need not be told while `ailment` is None."""
        # a read-only replica answers what only looks
        if writes or not self._cannot_write:
            self.ailment = None
            self._cannot_write = False
        if self._away_since_s is not None:
            self._back_s = monotonic()
            away_s = self._back_s - self._away_since_s
            self._away_since_s = None
            log.info("the store of bucket %d answers again, after %.1f s", self.number + 1, away_s)

    def _why(self, error: RedisError) -> Text | None:
        """What ails the store; the error of a script does not name the command that an ACL forbids it."""
        return ailment(error) or self._store.watch.ailment

    def _failed(self, what: str, error: RedisError, began_s: float, *, writes: bool) -> None:
        """A call that began then, in monotonic seconds, and that may write, has failed."""
        # the first failure was logged; many more follow quickly
        level = logging.DEBUG if isinstance(error, TooFewReplicasError) else logging.WARNING
        log.log(level, "%s failed in the store: %s", what, error)
        self.metrics.count(SCRIPT_ERRORS, what)
        self.ailment = self._why(error) or UNKNOWN
        self._cannot_write = self._cannot_write or writes
        if not isinstance(error, (RedisConnectionError, RedisTimeoutError)):
            return
        # the failure says nothing if another call has been answered since this one began
        if self._away_since_s is None and began_s > self._back_s:
            self._away_since_s = began_s
            # not a warning: of two equal warnings in a row, the log leaves the second one out
            log.error(AWAY, self.number + 1)


def _itself(reply: Reply) -> Reply:
    return reply


def _settle(
    future: asyncio.Future[T], read: Callable[[Reply], T], answer: Reply | Exception
) -> None:
    if future.done():
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
        return
    try:
        future.set_result(read(answer))
    except Exception as error:  # an answer that cannot be read
        future.set_exception(error)


def _timed_out(raw: Sequence[bytes]) -> list[TimedOut]:
    return [
        TimedOut(text(topic), text(job_id), int(attempt), text(worker))
        for topic, job_id, attempt, worker in batched(raw, 4)
    ]
