"""Messages between server processes: which topics have jobs that became ready (scripts: announce)."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from delayqueue.store.bucket.buckets import Buckets
from delayqueue.store.bucket.record import text
from delayqueue.store.servers.shards import Shards
from delayqueue.tasks import cancel_all

log = logging.getLogger(__name__)

SILENCE_S: Final = 10.0  # after so long without a message the connection is tried with a PING
RETRY_S: Final = 0.5  # until the next try when a connection was lost
SUBSCRIBED: Final = {"subscribe", "ssubscribe"}
MESSAGE: Final = {"message", "smessage"}


class Announcements:
    """Listens to every server of the store, with a connection each: one that is away silences its own buckets only.

    From Redis 7.0 on the channels are sharded. A plain message goes through every server of a Cluster, so each would
    hear of the jobs on all others; with its shard's messages only, a server's work does not grow with their number.
    """

    def __init__(self, shards: Shards, buckets: Buckets, sender: str) -> None:
        """What `sender` says itself is passed over."""
        self._shards = shards
        self._buckets = buckets
        self._bucket_of: dict[str, int] = {}  # by channel
        self._sender = sender.encode()

    async def listen(
        self, heard: Callable[[int, str, int], None], subscribed: Callable[[int], None]
    ) -> None:
        """Call `heard` with bucket, topic and count of what others made ready, for ever.

        `subscribed` is called with a bucket whenever listening to it begins, also after a reconnection: what was said
        before is lost.
        """
        while True:
            changed = asyncio.create_task(self._shards.changed.wait(), name="news of the store")
            self._bucket_of = {keys.ready_channel: n for n, keys in enumerate(self._buckets.keys)}
            followers = [
                asyncio.create_task(self._follow(redis, channels, heard, subscribed), name="news")
                for redis, channels in self._shards.groups(self._bucket_of).items()
            ]
            tasks = [changed, *followers]
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()  # a follower that died is a defect
            finally:
                await cancel_all(tasks)

    async def _follow(
        self,
        redis: Redis,
        channels: Sequence[str],
        heard: Callable[[int, str, int], None],
        subscribed: Callable[[int], None],
    ) -> None:
        sharded = True
        while True:
            try:
                async for kind, channel, data in _messages(redis, channels, sharded=sharded):
                    bucket = self._bucket_of[channel]
                    if kind in SUBSCRIBED:
                        subscribed(bucket)
                        continue
                    said_by, arrived, topic = data.split(b" ", 2)
                    if said_by != self._sender:
                        heard(bucket, text(topic), int(arrived))
            except RedisError as error:
                if sharded and isinstance(error, ResponseError) and "unknown command" in str(error):
                    sharded = False  # before Redis 7.0
                    continue
                log.warning("no news from other servers: %s", error)
                await asyncio.sleep(RETRY_S)


async def _messages(
    redis: Redis, channels: Sequence[str], *, sharded: bool
) -> AsyncIterator[tuple[str, str, bytes]]:
    """(kind, channel, data) of each message; notices a connection that is silently dead."""
    async with redis.pubsub() as pubsub:
        for channel in channels:  # one by one, as those of a call must be of one slot
            await (pubsub.ssubscribe if sharded else pubsub.subscribe)(channel)
        pinged = False
        while True:
            message = await pubsub.get_message(timeout=SILENCE_S)
            if message is not None:
                pinged = False
                if message["type"] in SUBSCRIBED | MESSAGE:
                    yield message["type"], message["channel"].decode(), message["data"]
            elif pinged:
                raise RedisTimeoutError("no answer to PING")
            else:
                await pubsub.ping()
                pinged = True
