"""An installation of the original in its Redis: what it holds, and the steps of moving jobs out of it.

Only one import works on it at a time: it holds a lock, and each script that changes something checks that it still
does.
"""

import asyncio
import hashlib
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from importlib import resources
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from delayqueue.config import values
from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError
from delayqueue.store.connect import connect
from delayqueue.store.original import (
    ASIDE,
    DESTINATION,
    LOCK,
    MOVING,
    PREFIXES,
    SIGNATURE,
    Names,
    unpack,
)

# The timer of an old server ticks every second, and processes the probe first; a burst of due jobs or a slow Redis may
# delay it.
DEAD_S: Final = 10.0


SAMPLE = 100  # ids of each bucket and list


async def key_prefix(redis: Redis, names: Names, given: str | None) -> str:
    """The prefix of the jobs' keys: `given`, or detected.

    Raises StartupError if there are jobs with both, or with another one than `given`: with a wrong one, all jobs would
    look as if they had ended.
    """
    ids = await _sample(redis, names)
    found = [
        prefix
        for prefix in sorted({*PREFIXES, given or ""})
        if ids and await redis.exists(*(prefix.encode() + job_id for job_id in ids))
    ]
    if given is not None:
        if found and given not in found:
            raise StartupError(
                f'--key-prefix "{given}": no job has it, they have "{found[0]}"; correct it'
            )
        return given
    if len(found) > 1:
        raise StartupError(
            "there are jobs of both ouqiang/delay-queue and php-cpm/delay-queue: "
            'choose one with --key-prefix "" or --key-prefix dq_key_, and import the others after it'
        )
    if found:
        return found[0]
    async for _ in redis.scan_iter(match="dq_key_*", count=SCAN_COUNT):
        return "dq_key_"  # every job has lost its place
    return ""


async def _sample(redis: Redis, names: Names) -> list[bytes]:
    """Some ids from buckets and lists."""
    ids: list[Any] = []
    for bucket in names.buckets():
        if await redis.type(bucket) == b"zset":
            ids += await redis.zrange(bucket, 0, SAMPLE - 1)
    async for queue in redis.scan_iter(match=names.queue_pattern(), count=1000):
        if await redis.type(queue) == b"list":
            ids += await redis.lrange(queue, 0, SAMPLE - 1)
    return ids


LOCK_MS: Final = 15_000
LOCK_WAIT_S: Final = 20.0  # a killed import holds the lock until it expires
POLL_S: Final = 0.2
PAGE: Final = 500  # ids per call
ANSWER_BYTES: Final = 8 * 2**20
SCAN_COUNT: Final = 1000
SCRIPTS: Final = ("look", "claim", "take")
DEFAULT_BUCKETS: Final = 3  # the original's default of bucket_size, for a config file without it


class AnotherImport(Exception):
    """Another import has the lock, or had it in the meantime."""

    def __init__(self) -> None:
        super().__init__(
            "another import is working on the old store, or this one was delayed too long"
        )


class StoredId(NamedTuple):
    """The state of one id: its record and its time in each bucket, None if it has none."""

    id: bytes
    record: bytes | None
    times: tuple[bytes | None, ...]

    @property
    def times_s(self) -> list[float]:
        """The times of a job in the buckets, in unix seconds."""
        return [float(time) for time in self.times if time is not None]


class Take(NamedTuple):
    """What to do with an id, if its state has not changed.

    With `due_ms`, take the job; without, set it aside for a reason, or drop the leftover entry of a job that has ended.
    """

    look: StoredId
    due_ms: int | None = None
    reason: str = ""


class Moving(NamedTuple):
    """What an import was doing when it ended: ids that it may have staged, and ids that it took, with due ms."""

    destination: str
    staged: list[bytes]
    taken: dict[bytes, int]


class Original:
    """The installation. Raises RedisError if its Redis fails, AnotherImport if the lock was lost."""

    def __init__(self, redis: Redis, names: Names) -> None:
        self._redis = redis
        self.names = names
        self._token = secrets.token_hex(8)
        self.probe = f"dq_import:probe:{secrets.token_hex(8)}".encode()
        self._probed = ""  # the bucket with the probe
        self._laid_at: float | None = None  # loop time
        self._buckets: list[str] = []
        self._scripts = {name: redis.register_script(_source(name)) for name in SCRIPTS}

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """Be the only import while the block runs. Raises AnotherImport if another one does not end."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + LOCK_WAIT_S
        while not await self._redis.set(LOCK, self._token, nx=True, px=LOCK_MS):
            if loop.time() > deadline:
                raise AnotherImport
            await asyncio.sleep(POLL_S)
        try:
            yield
        finally:
            with suppress(RedisError):
                if self._laid_at is not None:
                    await self._redis.zrem(self._probed, self.probe)
                if await self._redis.get(LOCK) == self._token.encode():
                    await self._redis.delete(LOCK)

    async def moving(self) -> Moving:
        """What an import was doing when it ended."""
        destination: Any = await self._redis.get(DESTINATION) or b""
        dues: dict[Any, Any] = await self._redis.hgetall(MOVING)
        return Moving(
            destination.decode(),
            [job_id for job_id, due in dues.items() if not due],
            {job_id: int(due) for job_id, due in dues.items() if due},
        )

    async def buckets(self) -> list[str]:
        """The buckets up to the last one that exists; an empty one has no key until the old server uses it."""
        names = self.names.buckets()
        kinds = await self._each("type", names)
        last = max((place for place, kind in enumerate(kinds) if kind == b"zset"), default=0)
        pairs = list(zip(names, kinds, strict=True))[: max(last + 1, DEFAULT_BUCKETS)]
        # another type: a job whose id is the name of a bucket
        self._buckets = [name for name, kind in pairs if kind in {b"zset", b"none"}]
        return self._buckets

    async def probe_server(self) -> bool:
        """Whether an old server may be running; always true within DEAD_S of the first call.

        Call buckets() before. The probe is an entry without a record, long due, in a bucket: the timer of a running
        server removes it.
        """
        now = asyncio.get_running_loop().time()
        if self._laid_at is None:
            if not self._buckets:
                raise RedisError("no key is left for a bucket")
            self._probed = self._buckets[0]
        elif await self._redis.zscore(self._probed, self.probe) is not None:
            return now - self._laid_at < DEAD_S
        await self._redis.zadd(self._probed, {self.probe: 0})
        self._laid_at = now
        return True

    async def queues(self) -> set[bytes]:
        """The ready lists that exist, and what else has such a key."""
        return {key async for keys in self._scan(self.names.queue_pattern()) for key in keys}

    async def strays(self) -> set[bytes]:
        """The ids of all records that are in no bucket. Reads the name of every key.

        A record of the other fork does not count, though its key may begin in the same way.
        """
        prefix = self.names.key_prefix.encode()
        found: set[bytes] = set()
        async for keys in self._scan(self.names.record_pattern()):
            # another type gives an error, which is not a signature
            heads = await self._each("getrange", keys, 0, len(SIGNATURE) - 1)
            pairs = zip(keys, heads, strict=True)
            ids = [key.removeprefix(prefix) for key, head in pairs if head == SIGNATURE]
            while ids:
                _, looks = await self.look(ids[:PAGE])
                found |= {look.id for look in looks if _is_stray(look)}
                del ids[: len(looks)]
        return found

    async def in_bucket(self, bucket: str, offset: int) -> list[bytes]:
        """A page of a bucket's ids, the earliest first."""
        ids: Any = await self._redis.zrange(bucket, offset, offset + PAGE - 1)
        return list(ids)

    async def in_queue(self, queue: bytes, offset: int) -> list[bytes]:
        """A page of a ready list's ids; none if its key holds something else."""
        try:
            ids: Any = await self._redis.lrange(queue, offset, offset + PAGE - 1)
        except ResponseError as error:
            if str(error).startswith("WRONGTYPE"):
                return []
            raise
        return list(ids)

    async def look(self, ids: Sequence[bytes]) -> tuple[int, list[StoredId]]:
        """The store's time in unix seconds, and the state of the ids; of the first ones only if that is much."""
        # there may be a thousand pages without a job to take
        await self._redis.pexpire(LOCK, LOCK_MS)
        args = [self.names.key_prefix, ANSWER_BYTES, *ids]
        now_s, rows = await self._run("look", self._buckets, args)
        looks = [
            StoredId(job_id, record, tuple(times))
            for job_id, (record, *times) in zip(ids, rows, strict=False)
        ]
        return now_s, looks

    async def claim(self, ids: Sequence[bytes] = (), destination: str = "") -> None:
        """Note which jobs are about to be staged in the destination; the ones before are settled. Keeps the lock."""
        args = [self._token, LOCK_MS, destination, *ids]
        await self._run("claim", [LOCK, MOVING, DESTINATION], args)

    async def take(self, takes: Sequence[Take], queue: bytes | None) -> list[bool]:
        """Take jobs, each only if its state has not changed.

        If it was found in the ready list `queue`, it must still be there; None = it was not.
        """
        args: list[Any] = [self._token, self.names.key_prefix, queue or b""]
        for look, due_ms, reason in takes:
            digest = hashlib.sha1(look.record).hexdigest() if look.record is not None else ""  # noqa: S324  # as Lua computes it
            times = b" ".join(time or b"-" for time in look.times)
            args += (look.id, digest, times, "" if due_ms is None else due_ms, reason)
        taken = await self._run("take", [LOCK, MOVING, ASIDE, *self._buckets], args)
        return [one == 1 for one in taken]

    async def _scan(self, pattern: str) -> AsyncIterator[list[bytes]]:
        """All keys that match, a page at a time; keeps the lock."""
        cursor = -1
        while cursor:
            await self.claim()
            page: Any = await self._redis.scan(max(cursor, 0), pattern, SCAN_COUNT)
            cursor, keys = page
            yield keys

    async def _each(self, command: str, keys: Sequence[Any], *args: Any) -> list[Any]:
        """Run a command for each key; for a key of another type the answer is the error."""
        if not keys:
            return []
        async with self._redis.pipeline(transaction=False) as pipe:
            for key in keys:
                getattr(pipe, command)(key, *args)
            answers = await pipe.execute(raise_on_error=False)
        for answer in answers:
            if isinstance(answer, RedisError) and not str(answer).startswith("WRONGTYPE"):
                raise answer
        return answers

    async def _run(self, name: str, keys: Sequence[Any], args: Sequence[Any]) -> Any:
        try:
            return await self._scripts[name](keys=keys, args=args)
        except ResponseError as error:
            if "LOCK is held" in str(error):
                raise AnotherImport from None
            raise


def _source(name: str) -> str:
    return resources.files(__package__).joinpath(f"{name}.lua").read_text("utf-8")


def _is_stray(look: StoredId) -> bool:
    if look.record is None or look.times_s:
        return False
    others = [prefix.encode() for prefix in PREFIXES if prefix]
    return not any(
        look.id.startswith(prefix) and _is_job(look.record, look.id.removeprefix(prefix))
        for prefix in others
    )


def _is_job(record: bytes, job_id: bytes) -> bool:
    try:
        unpack(record, job_id)
    except ValueError:
        return False
    return True


class StoreAway(Exception):
    """The old store, or the new one, does not answer or refuses; the message says which and why."""


@asynccontextmanager
async def open_old(config: Config, url: str) -> AsyncIterator[Redis]:
    """Connections to the old Redis, with the same precautions as to our own.

    Raises StartupError if it cannot be reached, StoreAway if Redis fails inside the block.
    """
    try:
        values.redis_url(url)
    except ValueError as error:
        raise StartupError(f"the old store: {error}") from None
    parts = urlsplit(url)
    if parts.scheme != "unix" and not parts.path.strip("/") and "db=" not in parts.query:
        raise StartupError(
            "the old store: say which database, as in redis://HOST:PORT/1; its config file has it as redis.db"
        )
    async with AsyncExitStack() as stack:
        there = replace(config, redis_url=url, redis_sentinel=(), redis_cluster=())
        try:
            servers = await stack.enter_async_context(connect(there, None))
        except StartupError as error:
            raise StartupError(f"the old store: {error}") from None
        try:
            yield servers.of("")
        except RedisError as error:
            raise StoreAway(str(error)) from error
