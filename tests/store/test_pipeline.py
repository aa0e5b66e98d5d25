"""Calls of the same moment go together, and each has its own answer; with real servers, which count what they read."""

import asyncio
import random
import time
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import pytest
import uvloop
from redis.asyncio import ConnectionPool, Redis
from redis.exceptions import AuthenticationError, BusyLoadingError, RedisError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from delayqueue.config.config import Config
from delayqueue.config.values import Address
from delayqueue.store import server as module
from delayqueue.store.connect import connect
from delayqueue.store.connection import NO_PLACE, Links, NotReplicatedError, Wait
from delayqueue.store.server import MOST_CALLS, Pipeline
from tests.clusters import ask
from tests.processes import LOOPBACK, Processes, StoreServer
from tests.store.calls import Call
from tests.waiting import until, until_async

SECONDS: Final = 10.0
CALLS: Final = 600
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


def to(redis: Redis) -> Links:
    """Links to where this client goes."""
    OPENED.append(Links(redis.connection_pool, most=20, wait_s=SECONDS))
    return OPENED[-1]


def to_port(port: int, most: int = 20, **options: Any) -> Links:
    return Links(ConnectionPool(port=port, **options), most, SECONDS)


def made(way: Pipeline, words: Sequence[Any]) -> Call:
    call = Call(*words)
    way.send(call)
    return call


async def answers(calls: Sequence[asyncio.Future[Any]]) -> list[Any]:
    async with asyncio.timeout(SECONDS):
        return await asyncio.gather(*calls, return_exceptions=True)


async def reason(links: Links) -> str:
    """Why no connection could be taken; "" if one was."""
    try:
        await links.take()
    except RedisConnectionError as error:
        return str(error)
    return ""


async def reads(redis: Redis) -> int:
    return int((await redis.info("stats"))["total_reads_processed"])


async def test_calls_of_one_moment_are_read_at_once(redis: Redis) -> None:
    way = Pipeline(to(redis))
    await made(way, ("PING",))
    before = await reads(redis)
    assert await answers([made(way, ("ECHO", n)) for n in range(MOST_CALLS)]) == [
        b"%d" % n for n in range(MOST_CALLS)
    ]
    assert await reads(redis) == before + 2, "they, and the question"


async def test_a_call_behind_the_most_that_go_together_goes_with_the_next(redis: Redis) -> None:
    way = Pipeline(to(redis))
    many = 3 * MOST_CALLS + 1
    assert await answers([made(way, ("INCR", "n")) for _ in range(many)]) == [*range(1, many + 1)]


async def test_an_error_is_that_of_its_call(redis: Redis) -> None:
    way = Pipeline(to(redis))
    one, wrong, other = await answers([made(way, each) for each in (["PING"], ["GET"], ["PING"])])
    assert (one, other) == (b"PONG", b"PONG")
    assert isinstance(wrong, ResponseError)


async def test_a_call_that_is_cancelled_before_it_is_sent_is_not_sent(redis: Redis) -> None:
    way = Pipeline(to(redis))
    calls = [made(way, ("INCR", "n")) for _ in range(3)]
    calls[1].cancel()
    await answers(calls)
    assert await redis.get("n") == b"2"


@pytest.mark.usefixtures("redis")
async def test_a_call_that_is_cancelled_while_no_connection_is_free_is_not_sent(
    store: StoreServer,
) -> None:
    links = to_port(store.port, most=1)
    held = await links.take()
    way = Pipeline(links)
    gone, stays = made(way, ("INCR", "n")), made(way, ("INCR", "n"))
    for _ in range(3):
        await asyncio.sleep(0)
    gone.cancel()
    links.give_back(held)
    assert await answers([stays]) == [1]
    await links.aclose()


async def test_a_connection_that_comes_too_late_is_free_again(
    store: StoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ANSWER_S", 0.2)
    links = to_port(store.port, most=1)
    held = await links.take()
    [late] = await answers([made(Pipeline(links), ("PING",))])
    assert isinstance(late, RedisTimeoutError)
    links.give_back(held)
    assert await links.take() is held
    await links.aclose()


async def test_a_silent_connection_keeps_nobody_else_waiting(redis: Redis) -> None:
    way = Pipeline(to(redis))
    silent = made(way, ("BLPOP", "nothing", SECONDS))
    await until_blocked(redis)
    assert await answers([made(way, ("ECHO", n)) for n in range(3)]) == [b"0", b"1", b"2"]
    assert not silent.done()
    await redis.rpush("nothing", "something")
    assert await answers([silent]) == [[b"nothing", b"something"]]


async def test_a_call_that_is_cancelled_under_way_takes_nobody_s_answer(redis: Redis) -> None:
    way = Pipeline(to(redis))
    gone = made(way, ("BLPOP", "nothing", 0.05))
    other = made(way, ("ECHO", "other"))
    await until_blocked(redis)
    gone.cancel()
    assert await answers([other, made(way, ("ECHO", "next"))]) == [b"other", b"next"]


async def test_a_connection_that_breaks_fails_what_is_under_way_and_no_more(redis: Redis) -> None:
    way = Pipeline(to(redis))
    await made(way, ("SELECT", "0"))
    stuck = [made(way, ("BLPOP", "nothing", SECONDS)), made(way, ("PING",))]
    await until_blocked(redis)
    later = made(way, ("ECHO", "later"))
    await redis.client_kill_filter(_type="normal", skipme=True)
    broken = await answers(stuck)
    assert all(isinstance(each, RedisError) for each in broken), broken
    assert await answers([later]) == [b"later"]


async def test_a_connection_that_was_closed_while_idle_is_replaced(redis: Redis) -> None:
    way = Pipeline(to(redis))
    first = await made(way, ("CLIENT", "ID"))
    await redis.client_kill_filter(_id=first)
    await until(lambda: not way._free[0].is_sound)
    assert await made(way, ("CLIENT", "ID")) > first


async def test_calls_at_the_moment_in_which_the_connection_closes_fail_as_connections_do(
    redis: Redis,
) -> None:
    way = Pipeline(to(redis))
    await made(way, ("PING",))
    [link] = way._free
    assert link._transport is not None
    call = made(way, ("PING",))
    link._transport.abort()
    [gone] = await answers([call])
    assert isinstance(gone, RedisConnectionError), gone
    assert await answers([made(way, ("PING",))]) == [b"PONG"]


async def test_a_connection_that_was_overtaken_serves_again(
    redis: Redis, store: StoreServer
) -> None:
    links = to_port(store.port, most=2)
    way = Pipeline(links)
    for _ in range(3):
        silent = made(way, ("BLPOP", "nothing", 0.3))
        await until_blocked(redis)
        assert await answers([made(way, ("PING",)), silent]) == [b"PONG", None]
    await links.aclose()


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (b"-LOADING it\r\n", BusyLoadingError),
        (b"-NOAUTH Authentication required.\r\n", AuthenticationError),
        (b"+PONG\r\n+PONG\r\n", None),
        (b"+PONG\r\n+PO", None),
        (b"?\r\n", RedisConnectionError),
        (b"", RedisConnectionError),
    ],
    ids=[
        "loading",
        "wants a password",
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
    said = [first]
    async with server(lambda _: said.pop() if said else b"+PONG\r\n") as (links, connections):
        way = Pipeline(links)
        [one] = await answers([made(way, ("PING",))])
        assert one == b"PONG" if told is None else isinstance(one, told), one
        assert await answers([made(way, ("PING",))]) == [b"PONG"]
        assert await answers([made(way, ("PING",))]) == [b"PONG"]
        assert len(connections) == 2


async def test_each_call_has_its_own_answer_and_is_done_once_whatever_breaks(
    redis: Redis, store: StoreServer
) -> None:
    chance = random.Random(1)

    async def count(way: Pipeline, n: int) -> int | None:
        """The answer of the counting call, None if it has none."""
        echo, incr = made(way, ("ECHO", n)), made(way, ("INCR", f"n{n}"))
        if chance.random() < 0.1:
            asyncio.get_running_loop().call_later(chance.choice([0, 0.001, 0.01]), echo.cancel)
        echoed, counted = await answers([echo, incr])
        assert echoed == b"%d" % n or isinstance(echoed, RedisError | asyncio.CancelledError)
        return None if isinstance(counted, RedisError) else counted

    async with fragile(store.port, chance) as port:
        db = redis.connection_pool.connection_kwargs["db"]
        links = to_port(port, db=db, most=5)
        way = Pipeline(links)
        told: list[int | None] = []
        for first in range(0, CALLS, 20):
            told += await asyncio.gather(*(count(way, first + n) for n in range(20)))
        # no place is lost, but for the connections that it keeps
        reasons = [await reason(links) for _ in range(3)]
        assert NO_PLACE not in reasons
        await links.aclose()
    done = await redis.mget([f"n{n}" for n in range(CALLS)])
    assert {*zip(told, done, strict=True)} == {(1, b"1"), (None, b"1"), (None, None)}


@pytest.mark.parametrize("wait", [None, NOBODY], ids=["", "WAIT"])
async def test_an_idle_connection_holds_no_calls(redis: Redis, wait: Wait | None) -> None:
    way = Pipeline(to(redis), wait)
    call = made(way, ("PING",))
    held = weakref.ref(call)
    await asyncio.wait([call])
    del call
    await asyncio.sleep(0)
    assert held() is None


async def test_a_connection_that_closes_as_soon_as_it_is_made_leaves_its_place() -> None:
    async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(close, LOOPBACK) as listener:
        links = to_port(listener.sockets[0].getsockname()[1], most=1)
        for _ in range(3):
            [gone] = await answers([made(Pipeline(links), ("PING",))])
            assert isinstance(gone, RedisConnectionError)
            assert gone.args != (NO_PLACE,)
        await links.aclose()


def test_a_broken_connection_goes_back_though_the_loop_is_late(store: StoreServer) -> None:
    """uvloop runs timers before new tasks, so the next exchange used to overtake one that had not begun."""

    async def lose_often() -> None:
        links = to_port(store.port, most=3)
        way = Pipeline(links)
        for _ in range(4):
            await answers([made(way, ("PING",))])
            way._free[0].break_off(RedisConnectionError())
            call = made(way, ("PING",))
            asyncio.get_running_loop().call_soon(time.sleep, 1.5 * module.OVERTAKEN_S)
            assert await answers([call]) == [b"PONG"]
        await links.aclose()

    uvloop.run(lose_often())


async def test_a_store_that_says_nothing_is_left_after_a_while(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ANSWER_S", 0.2)
    way = Pipeline(to(redis))
    [silent] = await answers([made(way, ("BLPOP", "nothing", SECONDS))])
    assert isinstance(silent, RedisTimeoutError)
    assert await answers([made(way, ("ECHO", "x"))]) == [b"x"], "not the answer to the other call"


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
            [silent] = await answers([made(Pipeline(links), ("PING",))])
            assert isinstance(silent, RedisTimeoutError)
            await until(lambda: ends == [ConnectionResetError])
            await links.aclose()

    run(ask())


async def test_an_answer_may_come_after_what_redis_py_waits_for_its_own(store: StoreServer) -> None:
    links = to_port(store.port, socket_timeout=2.0)
    assert await answers([made(Pipeline(links), ("BLPOP", "nothing", 2.5))]) == [None]
    await links.aclose()


async def test_what_no_replica_has_is_said_of_each_call_and_an_error_stays_its_own(
    redis: Redis,
) -> None:
    way = Pipeline(to(redis), NOBODY)
    one, wrong, other = await answers(
        [made(way, each) for each in (("SET", "a", 1), ["GET"], ("SET", "b", 1))]
    )
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
    before = (await redis.info("commandstats")).get("cmdstat_wait", {"calls": 0})["calls"]
    assert await answers([made(way, ("SET", str(n), n)) for n in range(10)]) == [b"OK"] * 10
    assert (await redis.info("commandstats"))["cmdstat_wait"]["calls"] == before + 1
    replica.close()


@pytest.mark.parametrize("said", [b"-NOPERM it\r\n", b"-ERR unknown command\r\n", b"+OK\r\n"])
async def test_a_wait_that_is_refused_is_no_refusal_of_its_call(
    said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the server refuses a call of a function, the caller runs the script instead."""
    monkeypatch.setattr(module, "OVERTAKEN_S", 60)
    says = {b"PING": b"+PONG\r\n", b"WAIT": said}
    async with server(says.__getitem__) as (links, connections):
        way = Pipeline(links, NOBODY)
        for _ in range(2):
            [unsure] = await answers([made(way, ("PING",))])
            assert isinstance(unsure, NotReplicatedError)
            assert str(unsure).startswith("WAIT: ")
        assert len(connections) == 1


@asynccontextmanager
async def server(
    says: Callable[[bytes], bytes],
) -> AsyncIterator[tuple[Links, list[asyncio.StreamWriter]]]:
    """Links to a server that answers this to PING and WAIT, or closes; and the connections."""
    connections = list[asyncio.StreamWriter]()
    ended = list[asyncio.StreamWriter]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        with suppress(ConnectionError):
            while line := (await reader.readline()).strip():
                if line in (b"PING", b"WAIT"):
                    answer = says(line)
                    if not answer:
                        break
                    writer.write(answer)
                elif line == b"CLIENT":  # SETINFO
                    writer.write(b"+OK\r\n")
        writer.close()
        ended.append(writer)

    async with await asyncio.start_server(serve, LOOPBACK) as listener:
        links = to_port(listener.sockets[0].getsockname()[1])
        try:
            yield links, connections
        finally:
            await links.aclose()
        await until(lambda: len(ended) == len(connections))


@asynccontextmanager
async def fragile(to: int, chance: random.Random) -> AsyncIterator[int]:
    """A port whose connections lead to that one, deliver late and in pieces, and break."""

    async def carry(reader: asyncio.StreamReader, *ends: asyncio.StreamWriter) -> None:
        while (data := await reader.read(4096)) and chance.random() > 0.02:
            size = chance.choice([1, 7, 4096])
            for at in range(0, len(data), size):
                ends[0].write(data[at : at + size])
                await asyncio.sleep(0)
        for end in ends:
            end.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(LOOPBACK, to)
        with suppress(ConnectionError):
            await asyncio.gather(
                carry(reader, far_writer, writer), carry(far_reader, writer, far_writer)
            )

    async with await asyncio.start_server(serve, LOOPBACK) as proxy:
        yield proxy.sockets[0].getsockname()[1]


async def until_blocked(redis: Redis) -> None:
    async def is_blocked() -> bool:
        return bool((await redis.info("clients"))["blocked_clients"])

    await until_async(is_blocked)
