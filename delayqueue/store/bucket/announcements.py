"""Messages between server processes: topics with jobs that became ready, and awaited jobs that have ended.

The scripts send them: `end_call` in _call.lua, and `tell_end` in _job.lua.
"""

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

SILENCE_S: Final = 10.0  # after this long without a message, the connection is tested with a PING
RETRY_S: Final = 0.5  # before the next try after a connection was lost
SUBSCRIBED: Final = {"subscribe", "ssubscribe"}
MESSAGE: Final = {"message", "smessage"}


class Announcements:
    """Listens to every server of the store, on a connection each: a server that fails silences only its own buckets.

    From Redis 7.0 on the channels are sharded. A plain message goes through every server of a Cluster, so each would
    receive the messages of all others; with sharded channels, a server's work does not grow with the number of servers.
    """

    def __init__(self, shards: Shards, buckets: Buckets, sender: str) -> None:
        """Messages from `sender` itself are ignored."""
        self._shards = shards
        self._buckets = buckets
        self._bucket_of: dict[str, int] = {}  # by channel
        self._sender = sender.encode()

    async def listen(
        self,
        heard: Callable[[int, str, int], None],
        ended: Callable[[str], None],
        subscribed: Callable[[int], None],
    ) -> None:
        """Call `heard` with bucket, topic and count of what others made ready, endlessly.

        `ended` is called with the id of each awaited job that has ended, whoever ended it. `subscribed` is called with
        a bucket whenever listening to it begins, also after a reconnection: earlier messages are lost.
        """
        while True:
            changed = asyncio.create_task(self._shards.changed.wait(), name="news of the store")
            self._bucket_of = {keys.ready_channel: n for n, keys in enumerate(self._buckets.keys)}
            followers = [
                asyncio.create_task(
                    self._follow(redis, channels, heard, ended, subscribed), name="news"
                )
                for redis, channels in self._shards.groups(self._bucket_of).items()
            ]
            tasks = [changed, *followers]
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()  # a follower that died is a bug
            finally:
                await cancel_all(tasks)

    async def _follow(
        self,
        redis: Redis,
        channels: Sequence[str],
        heard: Callable[[int, str, int], None],
        ended: Callable[[str], None],
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
                    said_by, arrived, name = data.split(b" ", 2)
                    if arrived == b"0":
                        ended(text(name))
                    elif said_by != self._sender:
                        heard(bucket, text(name), int(arrived))
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
        for channel in channels:  # one by one, because the channels of one call must be in one slot
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
