"""A connection that hears channels; with a real server."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from delayqueue.config.config import Config
from delayqueue.config.values import Address
from delayqueue.store import announcements
from delayqueue.store.connect import connect
from delayqueue.store.connection import Subscription
from tests.processes import LOOPBACK, Processes, StoreServer
from tests.waiting import until

CHANNEL: Final = "news"

Message = list[Any]


@pytest.fixture(scope="module")
def store(processes: Processes) -> StoreServer:
    return processes.redis()


@pytest.fixture
async def redis(store: StoreServer) -> AsyncIterator[Redis]:
    async with connect(Config(redis_host=Address(LOOPBACK, store.port)), None) as servers:
        [client] = servers.clients().values()
        yield client


@asynccontextmanager
async def subscribed(redis: Redis, heard: Callable[[Message], None]) -> AsyncIterator[Subscription]:
    subscription = Subscription(heard)
    await subscription.connect(redis.connection_pool)
    subscription.ask("SUBSCRIBE", CHANNEL)
    yield subscription
    subscription.close()


async def test_what_is_published_is_heard_in_order(redis: Redis) -> None:
    heard: list[Message] = []
    async with subscribed(redis, heard.append):
        await until(lambda: heard == [[b"subscribe", CHANNEL.encode(), 1]])
        for text in "first", "second":
            await redis.publish(CHANNEL, text)
        await until(lambda: len(heard) == 3)
        assert [data for _, _, data in heard[1:]] == [b"first", b"second"]


async def test_the_end_of_the_connection_is_told(redis: Redis) -> None:
    heard: list[Message] = []
    async with subscribed(redis, heard.append) as subscription:
        await until(lambda: bool(heard))
        await redis.client_kill_filter(_type="pubsub")
        with pytest.raises(RedisConnectionError):
            await subscription.lost


async def test_a_command_that_is_refused_ends_it(redis: Redis) -> None:
    async with subscribed(redis, lambda _: None) as subscription:
        subscription.ask("NONSENSE")
        with pytest.raises(ResponseError):
            await subscription.lost


async def test_an_error_of_who_hears_ends_it(redis: Redis) -> None:
    def fail(_: Message) -> None:
        raise ZeroDivisionError

    async with subscribed(redis, fail) as subscription:
        with pytest.raises(ZeroDivisionError):
            await subscription.lost


async def test_a_server_that_falls_silent_is_noticed(
    redis: Redis, store: StoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announcements, "SILENCE_S", 0.1)
    heard: list[Message] = []

    def hear(message: Message) -> None:
        heard.append(message)
        if message[0] == b"pong":  # it answers while it can
            store.freeze()

    try:
        with pytest.raises(RedisTimeoutError):
            await announcements.subscribe(redis, announcements.PLAIN, [CHANNEL], hear)
    finally:
        store.thaw()
    assert [message[0] for message in heard] == [b"subscribe", b"pong"]


async def test_a_lost_connection_raises_what_its_caller_catches(redis: Redis) -> None:
    with pytest.raises(RedisError):
        await announcements.subscribe(redis, "NONSENSE", [CHANNEL], lambda _: None)
