"""Our own connections to a server: how they log in, and what becomes of them when they are cut, refused or given up."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import hiredis
import pytest
import uvloop
from redis.asyncio import ConnectionPool, Redis, SSLConnection, UnixDomainSocketConnection
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    NoPermissionError,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from delayqueue.store.connect import our_driver
from delayqueue.store.connection import (
    CLOSED,
    NO_PLACE,
    Link,
    Links,
    Subscription,
)
from delayqueue.store.server import Pipeline
from tests.certificates import make
from tests.processes import LOOPBACK, Processes
from tests.store.scripted import Call
from tests.waiting import until

SECONDS: Final = 10.0
OK: Final = b"+OK\r\n"
LOGIN: Final[dict[str, Any]] = {"username": "u", "password": "p", "client_name": "me", "db": 3}
STEPS: Final = 5  # AUTH, the client's name, twice the driver's, SELECT
loops = pytest.mark.parametrize("run", [asyncio.run, uvloop.run])

Run = Callable[[Coroutine[Any, Any, None]], None]
Answer = Callable[[int, list[bytes]], bytes | None]


class Server:
    """It answers the n-th command of a connection with `answer(n, words)`; None = it closes. "" = it is silent."""

    def __init__(self, answer: Answer, greeting: bytes = b"", *, bytewise: bool = False) -> None:
        self.heard: list[list[bytes]] = []
        self.reads: list[int] = []  # how many commands came at once
        self.connections = 0
        self.ended = 0
        self._answer = answer
        self._greeting = greeting
        self._bytewise = bytewise

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        parser, number = hiredis.Reader(), 0
        writer.write(self._greeting)
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                parser.feed(data)
                said = b""
                self.reads.append(0)
                while (words := parser.gets()) is not False:
                    self.heard.append(words)
                    self.reads[-1] += 1
                    answer = self._answer(number, words)
                    number += 1
                    if answer is None:
                        writer.write(said)
                        writer.close()
                        self.ended += 1
                        return
                    said += answer
                for piece in (
                    [said[at : at + 1] for at in range(len(said))] if self._bytewise else [said]
                ):
                    writer.write(piece)
                    await asyncio.sleep(0)
        writer.close()
        self.ended += 1

    @asynccontextmanager
    async def listening(self, **options: Any) -> AsyncIterator[int]:
        async with await asyncio.start_server(self.serve, LOOPBACK, **options) as listener:
            yield listener.sockets[0].getsockname()[1]
            await until(lambda: self.ended == self.connections)


def cut_after(size: int, answers: bytes) -> Answer:
    """Answers whose end is cut off: after so many bytes the server closes."""

    def answer(number: int, _: list[bytes]) -> bytes | None:
        if number:
            return b"" if number < STEPS - 1 else None
        return answers[:size]

    return answer


def pool(port: int, **options: Any) -> ConnectionPool:
    given: dict[str, Any] = {"host": LOOPBACK, "port": port, "driver_info": our_driver()}
    return ConnectionPool(**given | options)


async def test_a_login_says_all_in_one_write() -> None:
    server = Server(lambda *_: OK)
    async with server.listening() as port:
        link = Link()
        await link.connect(pool(port, **LOGIN))
        link.close()
    assert server.reads == [STEPS]
    auth, name, lib, version, select = server.heard
    assert auth == [b"AUTH", b"u", b"p"]
    assert name == [b"CLIENT", b"SETNAME", b"me"]
    assert (lib[:3], version[:3]) == (
        [b"CLIENT", b"SETINFO", b"LIB-NAME"],
        [b"CLIENT", b"SETINFO", b"LIB-VER"],
    )
    assert select == [b"SELECT", b"3"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"password": "p"}, [[b"AUTH", b"p"]]),
        ({"username": "u"}, [[b"AUTH", b"u", b""]]),
        ({"password": "é"}, [[b"AUTH", "é".encode()]]),
        ({"db": 0}, []),
    ],
    ids=["a password for all", "a user without one", "not in ASCII", "nothing"],
)
async def test_a_login_says_no_more_than_it_must(
    options: dict[str, Any], said: list[list[bytes]]
) -> None:
    server = Server(lambda *_: OK)
    async with server.listening() as port:
        link = Link()
        await link.connect(pool(port, driver_info=None, **options))
        assert link.is_sound
        link.close()
    assert server.heard == said


@loops
def test_a_login_that_is_cut_anywhere_is_a_lost_connection(run: Run) -> None:
    answers = OK * STEPS

    async def cut(size: int) -> None:
        server = Server(cut_after(size, answers))
        async with server.listening() as port:
            links = Links(pool(port, **LOGIN), 1, SECONDS)
            for _ in range(2):  # its place is free again
                with pytest.raises(RedisConnectionError) as lost:
                    await links.take()
                assert str(lost.value) == CLOSED
            await links.aclose()

    async def cut_everywhere() -> None:
        for size in range(len(answers)):
            await cut(size)

    run(cut_everywhere())


@loops
def test_answers_may_come_byte_by_byte(run: Run) -> None:
    async def connect() -> None:
        server = Server(lambda *_: OK, bytewise=True)
        async with server.listening() as port:
            links = Links(pool(port, **LOGIN), 1, SECONDS)
            way = Pipeline(links)
            for _ in range(3):
                assert await answered(way, 2) == [b"OK", b"OK"]
            await links.aclose()

    run(connect())


async def answered(way: Pipeline, calls: int) -> list[Any]:
    """The answers, or errors, of calls of one moment."""
    made = [Call("PING") for _ in range(calls)]
    for call in made:
        way.send(call)
    async with asyncio.timeout(SECONDS):
        return await asyncio.gather(*made, return_exceptions=True)


ONE, TWO = b"$3\r\none\r\n", b"*2\r\n:1\r\n$0\r\n\r\n"


class Losing(Server):
    """Its first connection ends after so many bytes of two answers."""

    def __init__(self, size: int) -> None:
        super().__init__(self._say)
        self._size = size

    def _say(self, number: int, _: list[bytes]) -> bytes | None:
        if number < STEPS:
            return OK
        if self.connections > 1:
            return b"+again\r\n"
        return (ONE + TWO)[: self._size] if number == STEPS else None


@loops
@pytest.mark.parametrize("size", range(len(ONE + TWO)))
def test_a_connection_lost_at_any_byte_of_the_answers_fails_what_has_none_and_is_replaced(
    run: Run, size: int
) -> None:
    async def lose() -> None:
        async with Losing(size).listening() as port:
            links = Links(pool(port, **LOGIN), 1, SECONDS)
            way = Pipeline(links)
            first, second = await answered(way, 2)
            assert first == b"one" if size >= len(ONE) else isinstance(first, RedisConnectionError)
            assert isinstance(second, RedisConnectionError)
            assert await answered(way, 2) == [b"again", b"again"]
            await links.aclose()

    run(lose())


NO: Final = b"-NOPERM this user has no permissions\r\n"


@pytest.mark.parametrize(
    ("answers", "kind", "says"),
    [
        (
            [b"-WRONGPASS invalid pair\r\n"] + [b"-NOAUTH Authentication required.\r\n"] * 4,
            AuthenticationError,
            "invalid pair",
        ),
        (
            [b"-NOAUTH Authentication required.\r\n"] * 5,
            AuthenticationError,
            "Authentication required.",
        ),
        ([OK, NO, OK, OK, OK], NoPermissionError, "this user has no permissions"),
        ([OK, OK, NO, NO, OK], None, ""),
        ([OK, OK, b"-ERR Unknown subcommand\r\n", b"-ERR Unknown subcommand\r\n", OK], None, ""),
        (
            [OK, OK, OK, OK, b"-ERR DB index is out of range\r\n"],
            ResponseError,
            "DB index is out of range",
        ),
        (
            [OK, OK, b"-LOADING it\r\n", b"-LOADING it\r\n", b"-LOADING it\r\n"],
            BusyLoadingError,
            "it",
        ),
    ],
    ids=[
        "a wrong password",
        "no password",
        "its name",
        "the driver's name",
        "Redis 6.2",
        "database",
        "loading",
    ],
)
async def test_a_refused_login_is_the_error_of_what_was_refused(
    answers: Sequence[bytes], kind: type[RedisError] | None, says: str
) -> None:
    async with Server(lambda number, _: answers[number]).listening() as port:
        link = Link()
        if kind is None:
            await link.connect(pool(port, **LOGIN))
        else:
            with pytest.raises(kind) as refused:
                await link.connect(pool(port, **LOGIN))
            assert str(refused.value) == says
            assert not link.is_sound
        link.close()


@loops
def test_a_server_without_room_says_so_before_it_is_asked(run: Run) -> None:
    async def connect() -> None:
        full = Server(lambda *_: None, b"-ERR max number of clients reached\r\n")
        async with full.listening() as port:
            with pytest.raises(RedisConnectionError, match="max number of clients reached"):
                await Link().connect(pool(port, **LOGIN))

    run(connect())


@pytest.mark.parametrize("step", range(STEPS))
async def test_a_server_that_falls_silent_at_a_step_of_the_login_is_left(step: int) -> None:
    async with Server(lambda number, _: OK if number < step else b"").listening() as port:
        with pytest.raises(RedisTimeoutError, match=f"Timeout reading from {LOOPBACK}:{port}"):
            await Link().connect(pool(port, socket_timeout=0.1, **LOGIN))


async def test_a_host_that_cannot_be_one_is_an_error_of_the_connection() -> None:
    with pytest.raises(RedisConnectionError):
        await Link().connect(pool(1, host="x" * 64 + ".invalid"))


async def give_up(links: Links, turns: int) -> bool:
    """Whether it had been made after so many turns of the loop."""
    taking = asyncio.ensure_future(links.take())
    for _ in range(turns):
        await asyncio.sleep(0 if turns % 2 else 0.0005)
    taking.cancel()
    try:
        links.give_back(await taking)
    except asyncio.CancelledError:
        return False
    return True


async def give_up_everywhere(links: Links) -> None:
    turns = 0
    while not await give_up(links, turns):
        turns += 1
    assert turns > 1
    assert (await links.take()).is_sound
    await links.aclose()


async def test_a_password_that_no_bytes_stand_for_is_an_error_at_once() -> None:
    with pytest.raises(UnicodeEncodeError):
        await Link().connect(pool(1, password="\udc00"))


@loops
@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "tls"])
def test_a_connection_given_up_at_any_moment_is_closed_and_its_place_is_free(
    run: Run, is_tls: bool, tmp_path: Path
) -> None:
    far, near = dict[str, Any](), dict[str, Any]()
    if is_tls:
        own = make(tmp_path, "store")
        far["ssl"] = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        far["ssl"].load_cert_chain(own.cert, own.key)
        near = {"connection_class": SSLConnection, "ssl_ca_certs": str(own.cert)}

    async def try_all() -> None:
        async with Server(lambda *_: OK).listening(**far) as port:
            await give_up_everywhere(Links(pool(port, **near, **LOGIN), 1, SECONDS))

    run(try_all())


@loops
def test_a_connection_over_a_local_socket_is_given_up_as_well(run: Run, tmp_path: Path) -> None:
    server, path = Server(lambda *_: OK), str(tmp_path / "socket")

    async def try_all() -> None:
        async with await asyncio.start_unix_server(server.serve, path):
            local = ConnectionPool(UnixDomainSocketConnection, path=path, **LOGIN)
            await give_up_everywhere(Links(local, 1, SECONDS))
            await until(lambda: server.ended == server.connections)

    run(try_all())


async def test_there_are_as_many_connections_as_may_be_and_no_more() -> None:
    server = Server(lambda *_: OK)
    async with server.listening() as port:
        links = Links(pool(port), 2, 0.05)
        one, two = await links.take(), await links.take()
        assert one is not two
        with pytest.raises(RedisConnectionError, match=NO_PLACE):
            await links.take()
        links.give_back(two)
        assert await links.take() is two
        await links.aclose()
        links.give_back(one)
        with pytest.raises(RedisConnectionError, match=CLOSED):
            await links.take()
    assert server.connections == 2


async def test_a_free_connection_that_the_server_has_closed_is_replaced() -> None:
    server = Server(lambda _, words: OK if words[0] != b"PING" else None)
    async with server.listening() as port:
        links = Links(pool(port), 1, SECONDS)
        link = await links.take()
        links.give_back(link)
        link.begin([Call("PING")], None, lambda _: None)
        await until(lambda: not link.is_sound)
        assert await links.take() is not link
        await links.aclose()


async def test_a_silent_machine_is_noticed() -> None:
    async with Server(lambda *_: OK).listening() as port:
        link = Link()
        await link.connect(pool(port, socket_keepalive_options={socket.TCP_KEEPIDLE: 7}))
        assert link._transport is not None
        connection = link._transport.get_extra_info("socket")
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 7
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        link.close()


async def test_a_login_is_no_message_of_a_subscription() -> None:
    heard: list[Any] = []
    async with Server(lambda *_: OK, bytewise=True).listening() as port:
        subscription = Subscription(heard.append)
        await subscription.connect(pool(port, **LOGIN))
        assert heard == []
        subscription.ask("PING")
        await until(lambda: heard == [b"OK"])
        subscription.close()
        with pytest.raises(RedisConnectionError):
            await asyncio.wait_for(subscription.lost, SECONDS)


async def test_a_user_that_may_not_name_itself_is_let_in(processes: Processes) -> None:
    store = processes.redis("--requirepass", "admin")
    async with Redis(host=LOOPBACK, port=store.port, password="admin") as admin:
        await admin.execute_command("ACL", "SETUSER", "plain", "on", ">p", "~*", "+@all", "-client")  # type: ignore[no-untyped-call]
    links = Links(pool(store.port, username="plain", password="p"), 1, SECONDS)
    assert await answered(Pipeline(links), 1) == [b"PONG"]
    await links.aclose()
    store.close()
