"""Calls of the same moment go together, and each has its own answer; with real servers, which count what they read."""

import asyncio
import time
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Final

import pytest
import uvloop
from redis.asyncio import ConnectionPool, Redis
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    MasterDownError,
    ReadOnlyError,
    ResponseError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from delayqueue.config.config import Config
from delayqueue.config.values import Address
from delayqueue.store import server
from delayqueue.store import server as module
from delayqueue.store.connect import connect
from delayqueue.store.connection import Links, NotReplicatedError, Wait
from delayqueue.store.server import MOST_CALLS, Pipeline
from tests.clusters import ask
from tests.processes import LOOPBACK, Processes, StoreServer
from tests.store.bucket import calls_of
from tests.store.scripted import CUT, LOGIN, SECONDS, answers, links_to, made
from tests.waiting import until, until_async

LATER_MS: Final = 50  # how long a missing replica is waited for
NOBODY: Final = Wait(1, LATER_MS)
OPENED: Final[list[Links]] = []  # to be closed after a test


@pytest.fixture(scope="module")
def store(processes: Processes) -> StoreServer:
    return processes.redis("--repl-diskless-sync-delay", "0")


@pytest.fixture
async def redis(store: StoreServer) -> AsyncIterator[Redis]:
    async with connect(Config(redis_host=Address(LOOPBACK, store.port)), None) as servers:
        [client] = servers.clients().values()
        await client.flushall()
        yield client
    while OPENED:
        await OPENED.pop().aclose()


def to(redis: Redis, most: int = 20) -> Links:
    """Links to where this client goes."""
    OPENED.append(Links(redis.connection_pool, most, SECONDS))
    return OPENED[-1]


def to_port(port: int, most: int = 20, **options: Any) -> Links:
    return Links(ConnectionPool(port=port, **options), most, SECONDS)


async def reads(redis: Redis) -> int:
    return int((await redis.info("stats"))["total_reads_processed"])


async def test_calls_of_one_moment_are_read_at_once(redis: Redis) -> None:
    way = Pipeline(to(redis))
    await made(way, "PING")
    before = await reads(redis)
    assert await answers(*(made(way, "ECHO", n) for n in range(MOST_CALLS))) == [
        b"%d" % n for n in range(MOST_CALLS)
    ]
    assert await reads(redis) == before + 2, "they, and the question"


async def test_a_call_behind_the_most_that_go_together_goes_with_the_next(redis: Redis) -> None:
    way = Pipeline(to(redis))
    many = 3 * MOST_CALLS + 1
    assert await answers(*(made(way, "INCR", "n") for _ in range(many))) == [*range(1, many + 1)]


async def test_a_call_that_is_cancelled_before_it_is_sent_is_not_sent(redis: Redis) -> None:
    way = Pipeline(to(redis))
    calls = [made(way, "INCR", "n") for _ in range(3)]
    calls[1].cancel()
    await answers(*calls)
    assert await redis.get("n") == b"2"


@pytest.mark.usefixtures("redis")
async def test_a_call_that_is_cancelled_while_no_connection_is_free_is_not_sent(
    store: StoreServer,
) -> None:
    links = to_port(store.port, most=1)
    held = await links.take()
    way = Pipeline(links)
    gone, stays = made(way, "INCR", "n"), made(way, "INCR", "n")
    for _ in range(3):
        await asyncio.sleep(0)
    gone.cancel()
    links.give_back(held)
    assert await answers(stays) == [1]
    await links.aclose()


async def test_a_connection_that_comes_too_late_is_free_again(
    store: StoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ANSWER_S", 0.2)
    links = to_port(store.port, most=1)
    held = await links.take()
    [late] = await answers(made(Pipeline(links), "PING"))
    assert isinstance(late, RedisTimeoutError)
    links.give_back(held)
    assert await links.take() is held
    await links.aclose()


async def test_calls_at_the_moment_in_which_the_connection_closes_fail_as_connections_do(
    redis: Redis,
) -> None:
    way = Pipeline(to(redis))
    await made(way, "PING")
    [link] = way._free
    assert link._transport is not None
    call = made(way, "PING")
    link._transport.abort()
    [gone] = await answers(call)
    assert isinstance(gone, RedisConnectionError), gone
    assert await answers(made(way, "PING")) == [b"PONG"]


async def test_a_connection_that_was_overtaken_serves_again(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "AT_A_TIME", 1)
    way = Pipeline(to(redis, most=2))
    for n in range(3):
        silent = made(way, "BLPOP", "nothing", SECONDS)
        await until_blocked(redis)
        assert await answers(made(way, "ECHO", n)) == [b"%d" % n]
        assert not silent.done(), "nobody else waits for it"
        await redis.rpush("nothing", "something")
        assert await answers(silent) == [[b"nothing", b"something"]]


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (b"-LOADING it\r\n", BusyLoadingError),
        (b"-NOAUTH Authentication required.\r\n", AuthenticationError),
        (b"-READONLY it\r\n", ReadOnlyError),
        (
            b"-ERR Error running script (f_1): @user_script:2: @user_script: 2: -READONLY it\r\n",
            ReadOnlyError,
        ),
        (b"-MASTERDOWN it\r\n", MasterDownError),
        (b"+PONG\r\n+PONG\r\n", None),
        (b"+PONG\r\n+PO", None),
        (b"?\r\n", RedisConnectionError),
        (b"", RedisConnectionError),
    ],
    ids=[
        "loading",
        "wants a password",
        "is a replica now",
        "and an old one",
        "is one that has lost its master",
        "says more than it was asked",
        "and half of it",
        "no protocol",
        "closes",
    ],
)
async def test_a_connection_is_left_if_its_server_refuses_or_talks_nonsense(
    first: bytes, told: type[Exception] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "OVERTAKEN_S", 60)
    said = [first or CUT]

    async def say(_connection: int, words: list[bytes]) -> bytes:
        if words[0] == LOGIN:
            return b"+OK\r\n"
        return said.pop() if said else b"+PONG\r\n"

    async with links_to(say) as (links, server):
        way = Pipeline(links)
        [one] = await answers(made(way, "PING"))
        assert one == b"PONG" if told is None else isinstance(one, told), one
        assert await answers(made(way, "PING")) == [b"PONG"]
        assert await answers(made(way, "PING")) == [b"PONG"]
        assert server.connections == 2


@pytest.mark.parametrize("wait", [None, NOBODY], ids=["", "WAIT"])
async def test_an_idle_connection_holds_no_calls(redis: Redis, wait: Wait | None) -> None:
    way = Pipeline(to(redis), wait)
    call = made(way, "PING")
    held = weakref.ref(call)
    await asyncio.wait([call])
    del call
    await asyncio.sleep(0)
    assert held() is None


def test_a_broken_connection_goes_back_though_the_loop_is_late(store: StoreServer) -> None:
    """uvloop runs timers before new tasks, so the next exchange used to overtake one that had not begun."""

    async def lose_often() -> None:
        links = to_port(store.port, most=3)
        way = Pipeline(links)
        for _ in range(4):
            await answers(made(way, "PING"))
            way._free[0].break_off(RedisConnectionError())
            call = made(way, "PING")
            asyncio.get_running_loop().call_soon(time.sleep, 1.5 * module.OVERTAKEN_S)
            assert await answers(call) == [b"PONG"]
        await links.aclose()

    uvloop.run(lose_often())


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_the_connection_to_a_store_that_says_nothing_is_reset_so_that_nothing_is_sent_again(
    run: Callable[[Coroutine[Any, Any, None]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ANSWER_S", 0.2)
    ends: list[type[Exception]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := (await reader.readline()).strip():
                if line == b"CLIENT":  # SETINFO
                    writer.write(b"+OK\r\n")
        except ConnectionError as error:
            ends.append(type(error))
        writer.close()

    async def ask() -> None:
        async with await asyncio.start_server(serve, LOOPBACK) as listener:
            port = listener.sockets[0].getsockname()[1]
            links = to_port(port)
            [silent] = await answers(made(Pipeline(links), "PING"))
            assert isinstance(silent, RedisTimeoutError)
            await until(lambda: ends == [ConnectionResetError])
            await links.aclose()

    run(ask())


async def test_an_answer_may_come_after_what_redis_py_waits_for_its_own(store: StoreServer) -> None:
    links = to_port(store.port, socket_timeout=2.0)
    assert await answers(made(Pipeline(links), "BLPOP", "nothing", 2.5)) == [None]
    await links.aclose()


async def test_what_no_replica_has_is_said_of_each_call_and_an_error_stays_its_own(
    redis: Redis,
) -> None:
    way = Pipeline(to(redis), NOBODY)
    calls = made(way, "SET", "a", 1), made(way, "GET"), made(way, "SET", "b", 1)
    one, wrong, other = await answers(*calls)
    assert isinstance(one, NotReplicatedError)
    assert isinstance(other, NotReplicatedError)
    assert isinstance(wrong, ResponseError)
    assert await redis.mget("a", "b") == [b"1", b"1"], "it is done all the same"


async def test_calls_of_one_moment_wait_for_the_replicas_together(
    redis: Redis, store: StoreServer, processes: Processes
) -> None:
    replica = processes.redis("--replicaof", LOOPBACK, str(store.port))
    await until(lambda: ask(store, "WAIT", 1, LATER_MS) == 1, within_s=2 * SECONDS)
    way = Pipeline(to(redis), Wait(1, 4000))
    before = await calls_of(redis, "wait")
    assert await answers(*(made(way, "SET", str(n), n) for n in range(10))) == [b"OK"] * 10
    assert await calls_of(redis, "wait") == before + 1
    replica.close()


@pytest.mark.parametrize("said", [b"-NOPERM it\r\n", b"-ERR unknown command\r\n", b"+OK\r\n"])
async def test_a_wait_that_is_refused_is_no_refusal_of_its_call(
    said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the server refuses a call of a function, the caller runs the script instead."""
    monkeypatch.setattr(module, "OVERTAKEN_S", 60)
    says = {LOGIN: b"+OK\r\n", b"PING": b"+PONG\r\n", b"WAIT": said}

    async def say(_connection: int, words: list[bytes]) -> bytes:
        return says[words[0]]

    async with links_to(say) as (links, server):
        way = Pipeline(links, NOBODY)
        for _ in range(2):
            [unsure] = await answers(made(way, "PING"))
            assert isinstance(unsure, NotReplicatedError)
            assert str(unsure).startswith("WAIT: ")
        assert server.connections == 1


async def until_blocked(redis: Redis) -> None:
    async def is_blocked() -> bool:
        return bool((await redis.info("clients"))["blocked_clients"])

    await until_async(is_blocked)
