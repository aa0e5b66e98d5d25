"""Messages between server processes: topics with jobs that became ready, and awaited jobs that have ended.

The scripts send them: `end_call` in _call.lua, and `tell_end` in _job.lua.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from redis.asyncio import Redis
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from delayqueue.domain.job import CALLS, PolledTopic
from delayqueue.store.connection import Subscription
from delayqueue.store.record import text
from delayqueue.store.store import Store
from delayqueue.tasks import cancel_all

log = logging.getLogger(__name__)

# Without a message from one look to the next, the connection is tested with a PING; without an answer until the one
# after that, it is dead.
SILENCE_S: Final = 10.0
RETRY_S: Final = 0.5  # before the next try after a connection was lost
SHARDED: Final = "SSUBSCRIBE"
PLAIN: Final = "SUBSCRIBE"  # before Redis 7.0
SUBSCRIBED: Final = {b"subscribe", b"ssubscribe"}
MESSAGE: Final = {b"message", b"smessage"}
# the process that says it, how many jobs became ready (0 = one has ended), and the topic, or the id
NEWS: Final = re.compile(b"([^ ]+) ([0-9]{1,14}) (.*)", re.DOTALL)


async def listen(
    store: Store,
    on_ready: Callable[[int, PolledTopic, int], None],
    on_end: Callable[[str], None],
    on_subscribed: Callable[[int], None],
) -> None:
    """Call `on_ready` with bucket, topic and count of what other processes made ready, endlessly.

    `on_end` is called with the id of each awaited job that has ended, whoever ended it. `on_subscribed` is called with
    a bucket whenever listening to it begins, also after a reconnection: earlier messages are lost.

    Every server of the store has a connection: one that fails silences only its own buckets. From Redis 7.0 on the
    channels are sharded. A plain message goes through every server of a Cluster, so each would receive the messages of
    all others; with sharded channels, a server's work does not grow with the number of servers.
    """
    bucket_of: dict[str, int] = {}  # by channel
    this_process = store.sender.encode()

    def receive(message: list[Any]) -> None:
        kind, *rest = message
        if kind in SUBSCRIBED:
            on_subscribed(bucket_of[rest[0].decode()])
        elif kind in MESSAGE and (news := NEWS.fullmatch(rest[1])):  # anybody may publish there
            sender, arrived, name = news.groups()
            if arrived == b"0":
                on_end(text(name))
            elif sender != this_process:
                on_ready(bucket_of[rest[0].decode()], text(name) or CALLS, int(arrived))

    while True:
        changed = asyncio.create_task(store.servers.changed.wait(), name="news of the store")
        bucket_of = {keys.named("ready"): n for n, keys in enumerate(store.buckets.keys)}
        followers = [
            asyncio.create_task(_follow(redis, channels, receive), name="news")
            for redis, channels in store.servers.groups(bucket_of).items()
        ]
        tasks = [changed, *followers]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # a follower that died is a bug
        finally:
            await cancel_all(tasks)


async def _follow(
    redis: Redis, channels: Sequence[str], receive: Callable[[list[Any]], None]
) -> None:
    verb = SHARDED
    while True:
        try:
            await subscribe(redis, verb, channels, receive)
        except RedisError as error:
            if verb == SHARDED and "unknown command" in str(error):
                verb = PLAIN
                continue
            log.warning("no news from other servers: %s", error)
            await asyncio.sleep(RETRY_S)


async def subscribe(
    redis: Redis, verb: str, channels: Sequence[str], receive: Callable[[list[Any]], None]
) -> None:
    """Call `receive` with each message of these channels. Raises RedisError when the connection is lost or dead."""
    subscription = Subscription(receive)
    try:
        await subscription.connect(redis.connection_pool)
        for channel in channels:  # one by one, because the channels of one call must be in one slot
            subscription.ask(verb, channel)
        is_tested = False
        while not subscription.lost.done():
            received_s = subscription.received_s
            await asyncio.wait([subscription.lost], timeout=SILENCE_S)
            if subscription.received_s != received_s:
                is_tested = False
            elif is_tested:
                raise RedisTimeoutError("no answer to PING")
            else:
                subscription.ask("PING")
                is_tested = True
        subscription.lost.result()
    finally:
        subscription.close()
