"""The store: one method a script, for one bucket at a time. All that the rest of the program sees of Redis."""

import logging
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from importlib import resources
from typing import Any, NamedTuple
from zlib import crc32

import redis.exceptions
from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.commands.core import AsyncScript
from redis.exceptions import RedisError

from delayqueue.errors import Unavailable
from delayqueue.job import Job, JobView, Reserved, State
from delayqueue.receipt import nonces, receipt_for
from delayqueue.store.keys import BucketKeys
from delayqueue.store.record import dump_options, ended_view, live_view, reserved_job, text

log = logging.getLogger(__name__)

# One tick moves at most so many jobs: 10,000 blocked the store for 13 ms.
TICK_LIMIT = 2000

# After so long without a message the pub/sub connection is tried with a PING.
SILENCE_S = 10.0

# A topic and how many of its jobs became ready.
Arrivals = list[tuple[str, int]]


class Pushed(NamedTuple):
    """What a push did: a code for each job, what became ready, ms to the earliest due time of the delayed ones."""

    codes: list[int]
    ready: Arrivals
    next_due_ms: int | None


class Ticked(NamedTuple):
    """What a tick did: what became ready, ms to the next due time (0: more is due now), and its counts."""

    ready: Arrivals
    next_due_ms: int | None
    redelivered: int
    buried: int
    expired: int
    set_aside: int


class Demand(NamedTuple):
    """So many jobs are wanted of these topics, in this order of preference."""

    topics: tuple[str, ...]
    wanted: int


class Popped(NamedTuple):
    """Jobs for each demand; `cut` where the answer grew so large that ready jobs were left behind."""

    jobs: list[list[Reserved]]
    cut: bool


class Ending(NamedTuple):
    """A job to finish or delete. nonce "" = whatever its state."""

    id: str
    nonce: str
    message: str


class Store:
    """Calls the scripts. Buckets are numbered from 0 here; `keys.py` names them from 1.

    Every method raises Unavailable where Redis does not answer or refuses; the scripts are atomic, so a call that
    Redis never ran has changed nothing, and one whose answer was lost has changed all that it should.
    """

    def __init__(
        self, redis: Redis, buckets: Sequence[BucketKeys], scheduler: str = "zset"
    ) -> None:
        self._redis = redis
        self._buckets = buckets
        self._scheduler = scheduler
        self._nonces = nonces()
        self.sender = secrets.token_hex(6)  # marks what this process announces, for itself to skip
        self._push = self._script("push")
        self._pop = self._script("pop")
        self._putback = self._script("putback")
        self._finish = self._script("finish")
        self._delete = self._script("delete")
        self._get = self._script("get")
        self._tick = self._script("tick")

    def _script(self, verb: str) -> AsyncScript:
        folder = resources.files("delayqueue.store.scripts")
        parts = ("_prelude", f"_{self._scheduler}", "_life", verb)
        return self._redis.register_script(
            "\n".join(folder.joinpath(f"{part}.lua").read_text("utf-8") for part in parts)
        )

    async def _call(self, script: AsyncScript, bucket: int, args: list[Any]) -> Any:
        keys = self._buckets[bucket]
        try:
            return await script(keys=[keys.tag, keys.queue_name], args=args)
        except RedisError as error:
            log.warning("the store failed: %s", error)
            raise Unavailable from error

    @property
    def bucket_count(self) -> int:
        return len(self._buckets)

    def bucket_of(self, job_id: str) -> int:
        """The number of the bucket that this id belongs to."""
        if len(self._buckets) == 1:
            return 0
        return crc32(job_id.encode()) % len(self._buckets)

    async def push(self, bucket: int, jobs: Sequence[Job]) -> Pushed:
        """Add or replace jobs that all belong to `bucket`."""
        args: list[Any] = [self.sender]
        for job in jobs:
            when = f"+{job.delay_ms}" if job.due_ms is None else f"={job.due_ms}"
            options = dump_options(job)
            args += (job.id, job.topic, when, job.ttr_ms, job.expire_ms)
            args += (job.retain_ms, job.if_exists.value, options, job.body)
        next_due_ms, codes, ready = await self._call(self._push, bucket, args)
        return Pushed(codes, _arrivals(ready), _or_none(next_due_ms))

    async def pop(self, bucket: int, demands: Sequence[Demand]) -> Popped:
        """Reserve ready jobs: for each demand at most its count, oldest first, [] where nothing is ready."""
        nonce = next(self._nonces)
        args: list[Any] = [nonce]
        for demand in demands:
            args += (demand.wanted, len(demand.topics), *demand.topics)
        cut, answers = await self._call(self._pop, bucket, args)
        return Popped([_reserved(found, nonce) for found in answers], cut == 1)

    async def putback(self, bucket: int, jobs: Sequence[tuple[str, str]]) -> Arrivals:
        """Undo reservations, given as (id, nonce): to the head of the list, the attempt uncounted."""
        args: list[Any] = [self.sender]
        for job_id, nonce in jobs:
            args += (nonce, job_id)
        return _arrivals(await self._call(self._putback, bucket, args))

    async def finish(self, bucket: int, endings: Sequence[Ending]) -> list[int]:
        """End jobs whose work is done; a code for each."""
        return await self._end(self._finish, bucket, endings)

    async def delete(self, bucket: int, endings: Sequence[Ending]) -> list[int]:
        """End jobs that are not wanted any more; a code for each."""
        return await self._end(self._delete, bucket, endings)

    async def _end(self, script: AsyncScript, bucket: int, endings: Sequence[Ending]) -> list[int]:
        args = [part for ending in endings for part in ending]
        codes: list[int] = await self._call(script, bucket, args)
        return codes

    async def get(self, bucket: int, ids: Sequence[str]) -> list[JobView | None]:
        """All that is known of jobs, None for each unknown id."""
        answers = await self._call(self._get, bucket, list(ids))
        return [_view(job_id, answer) for job_id, answer in zip(ids, answers, strict=True)]

    async def tick(self, bucket: int, limit: int = TICK_LIMIT) -> Ticked:
        """Move what is due."""
        answer = await self._call(self._tick, bucket, [self.sender, limit])
        next_due_ms, ready, *counts = answer
        return Ticked(_arrivals(ready), _or_none(next_due_ms), *counts)

    async def announcements(
        self, subscribed: Callable[[], None]
    ) -> AsyncIterator[tuple[int, str, int]]:
        """What other processes made ready: (bucket, topic, count), for ever.

        `subscribed` is called whenever listening begins, also after a reconnection: what was said before is lost.
        """
        bucket_of = {
            keys.ready_channel.encode(): bucket for bucket, keys in enumerate(self._buckets)
        }
        try:
            async with self._redis.pubsub() as pubsub:
                await pubsub.subscribe(*bucket_of)
                async for kind, channel, data in _messages(pubsub):
                    if kind == "subscribe":
                        subscribed()
                        continue
                    sender, arrived, topic = data.split(b" ", 2)
                    if sender.decode() != self.sender:
                        yield bucket_of[channel], text(topic), int(arrived)
        except RedisError as error:
            log.warning("no news from other servers: %s", error)
            raise Unavailable from error


async def _messages(pubsub: PubSub) -> AsyncIterator[tuple[str, bytes, bytes]]:
    """(kind, channel, data) of each message; notices a connection that is silently dead."""
    pinged = False
    while True:
        message = await pubsub.get_message(timeout=SILENCE_S)
        if message is not None:
            pinged = False
            if message["type"] in {"subscribe", "message"}:
                yield message["type"], message["channel"], message["data"]
        elif pinged:
            raise redis.exceptions.TimeoutError("no answer to PING")
        else:
            await pubsub.ping()
            pinged = True


def _or_none(number: int) -> int | None:
    return None if number < 0 else number


def _arrivals(flat: list[Any]) -> Arrivals:
    return [(text(flat[i]), flat[i + 1]) for i in range(0, len(flat), 2)]


def _reserved(found: list[Any], nonce: str) -> list[Reserved]:
    return [
        reserved_job(found[i], found[i + 1], found[i + 2], receipt_for(nonce, text(found[i])))
        for i in range(0, len(found), 3)
    ]


def _view(job_id: str, answer: list[Any]) -> JobView | None:
    match answer:
        case []:
            return None
        case [b"ended", kept]:
            return ended_view(job_id, kept)
        case [state, record, run]:
            return live_view(job_id, State(state.decode()), record, run)
        case _:
            raise AssertionError(f"get.lua answered {answer!r}")
