"""Messages between server processes: which topics have jobs that became ready (scripts: announce)."""

import logging
from collections.abc import AsyncIterator, Callable, Sequence

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from delayqueue.errors import Unavailable
from delayqueue.store.keys import BucketKeys
from delayqueue.store.record import text

log = logging.getLogger(__name__)

SILENCE_S = 10.0  # after so long without a message the connection is tried with a PING


async def listen(
    redis: Redis, buckets: Sequence[BucketKeys], sender: str, subscribed: Callable[[int], None]
) -> AsyncIterator[tuple[int, str, int]]:
    """What other processes than `sender` made ready: (bucket, topic, count), for ever.

    `subscribed` is called with a bucket whenever listening to it begins, also after a reconnection: what was said
    before is lost. Unavailable where the connection breaks.
    """
    bucket_of = {keys.ready_channel.encode(): number for number, keys in enumerate(buckets)}
    try:
        async with redis.pubsub() as pubsub:
            await pubsub.subscribe(*bucket_of)
            async for kind, channel, data in _messages(pubsub):
                if kind == "subscribe":
                    subscribed(bucket_of[channel])
                    continue
                said_by, arrived, topic = data.split(b" ", 2)
                if said_by.decode() != sender:
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
            raise RedisTimeoutError("no answer to PING")
        else:
            await pubsub.ping()
            pinged = True
