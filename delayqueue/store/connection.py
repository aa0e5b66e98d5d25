"""Our connections to a server of the store: calls go out in one write, and their answers come back in order.

redis-py sends and reads with a task, timeouts and a dozen coroutines for each exchange: three times the processor time.
It says where and how to connect all the same: a link goes to where the connections of a redis-py pool go, and logs in
as they do.
"""

import asyncio
import os
import re
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic
from typing import Any, Final, NamedTuple, Protocol, cast

import hiredis
from redis.asyncio import Connection as RedisConnection
from redis.asyncio import SSLConnection, UnixDomainSocketConnection
from redis.asyncio.connection import ConnectionPool, DefaultParser, RedisSSLContext
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import MasterDownError, ReadOnlyError, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from delayqueue.net.hangup import hang_up

CLOSED: Final = "Connection closed by server."
NO_ANSWER: Final = "no answer"
NO_PLACE: Final = "No connection available."
INCOMPLETE: Final = object()
# Errors of a replica: behind a name or a proxy, another server is the master now, and only a new connection reaches it.
DEMOTED: Final = (ReadOnlyError, MasterDownError)
# What Redis before 7.0 refuses to a script, in a frame: "… @user_script: 2: -READONLY You can't write against …"
IN_A_SCRIPT: Final = re.compile(r"^ERR Error running script .* @user_script: \d+: -(?=[A-Z]+ )")

Like = RedisConnection | UnixDomainSocketConnection


class AnswerParser(DefaultParser):  # type: ignore[misc,valid-type]  # redis-py has a variable for one of two classes
    """Gives the errors of scripts their classes on every version of Redis."""

    @classmethod
    def parse_error(cls, response: str) -> Exception:
        """The error of an answer that is one."""
        error: Exception = super().parse_error(IN_A_SCRIPT.sub("", response))
        return error


class LoginCommand(NamedTuple):
    """A command of a login, and whether it may be refused: the server is older, or its user may not name itself."""

    packed: bytes
    is_optional: bool = False


class Wait(NamedTuple):
    """How many replicas must have a call, and within which time."""

    replicas: int
    timeout_ms: int


class NotReplicatedError(RedisError):
    """Too few replicas acknowledged a call in time; it is done on the master."""


class Sendable(Protocol):
    """A call, as a connection sends it."""

    @property
    def waiter(self) -> asyncio.Future[Any] | None:
        """Who waits for its answer, None = somebody does in any case; once that is done, it is not sent."""

    @property
    def packed(self) -> bytes:
        """The words that are sent."""

    @property
    def made_s(self) -> float:
        """When it was made, in monotonic seconds."""

    def answered(self, answer: Any) -> None:
        """Take the answer, also if nobody waits for it any more. This or failed() is called at most once each time."""

    def failed(self, error: Exception) -> None:
        """Take the error that came in place of the answer."""


def give_up(calls: Iterable[Sendable], error: Exception) -> None:
    """Fail those of the calls whose answer somebody still waits for."""
    for call in calls:
        if call.waiter is None or not call.waiter.done():
            call.failed(error)


class ServerConnection(asyncio.Protocol):
    """A connection to a server. It speaks RESP2: as fast as RESP3 (measured), and every server and proxy has it."""

    def __init__(self) -> None:
        self.is_sound = True  # whether it can be used
        self._transport: asyncio.Transport | None = None
        self._reader: Final = hiredis.Reader(
            protocolError=RedisConnectionError,
            replyError=AnswerParser.parse_error,
            notEnoughData=INCOMPLETE,
        )
        self._login: Sequence[LoginCommand] = ()
        self._login_answers: list[Any] = []
        self._logged_in: asyncio.Future[None]
        self._missing = 0  # answers

    async def connect(self, pool: ConnectionPool) -> None:
        """Connect to where the pool's connections go, and log in.

        Raises RedisError: ConnectionError if that fails, TimeoutError if it takes too long, what the server refuses.
        """
        like: Like = pool.make_connection()  # type: ignore[no-untyped-call]
        self._login = _login_of(like)
        self._logged_in = asyncio.get_running_loop().create_future()
        place = _place(like)
        try:
            try:
                async with asyncio.timeout(like.socket_connect_timeout):
                    await self._reach(like)
            except TimeoutError:
                raise RedisTimeoutError(f"Timeout connecting to {place}") from None
            except Exception as error:  # also a host that is no name, TLS files that cannot be read
                raise RedisConnectionError(_refused(place, error)) from error
            try:
                async with asyncio.timeout(like.socket_timeout):
                    await self._logged_in
            except TimeoutError:
                raise RedisTimeoutError(f"Timeout reading from {place}") from None
        except BaseException:
            self.close()
            raise

    async def _reach(self, like: Like) -> None:
        """Open the socket. Raises OSError, or ValueError for a host that is none."""
        loop = asyncio.get_running_loop()
        if isinstance(like, UnixDomainSocketConnection):
            await loop.create_unix_connection(lambda: self, like.path)
        else:
            tls = shared_context(like.ssl_context) if isinstance(like, SSLConnection) else None
            transport, _ = await loop.create_connection(lambda: self, like.host, like.port, ssl=tls)
            if like.socket_keepalive and not transport.is_closing():
                _keep_alive(transport, like)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Log in at once: a server that has no room for us says so without being asked."""
        self._transport = cast("asyncio.Transport", transport)
        if not self.is_sound:  # nobody waits for it any more
            self._transport.abort()
        elif self._login:
            self._send([command.packed for command in self._login])
        else:
            self._logged_in.set_result(None)

    def _send(self, packed: Sequence[bytes]) -> None:
        """Send commands, each of which has an answer."""
        self._missing = len(packed)
        # if it is closing, writing is ignored, or raises RuntimeError (uvloop)
        if self._transport is None or self._transport.is_closing():
            self.break_off(RedisConnectionError(CLOSED))
        else:
            self._transport.writelines(packed)

    def break_off(self, error: Exception) -> None:
        """Close the connection; the error replaces each missing answer."""
        self.is_sound = False
        if self._transport is not None:
            hang_up(self._transport)
        if missing := self._missing:
            self._missing = 0
            self._take_answers([error] * missing)

    def close(self) -> None:
        """Close it, without waiting for the end of TLS: a silent server never says it. A call under way fails."""
        if self._missing:
            self.break_off(RedisConnectionError(CLOSED))
        self.is_sound = False
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Pass on the answers that are complete."""
        reader, answers = self._reader, list[Any]()
        broken: RedisConnectionError | None = None
        reader.feed(data)
        try:
            while len(answers) < self._missing and (answer := reader.gets()) is not INCOMPLETE:
                answers.append(answer)
                if isinstance(answer, DEMOTED) or (
                    isinstance(answer, RedisError) and not isinstance(answer, ResponseError)
                ):
                    # the server refuses everything, for example while it loads, or all that writes
                    self.is_sound = False
        except RedisConnectionError as error:
            broken = error
        self._missing -= len(answers)
        if not self._missing and reader.has_data():  # a part would prefix the next one
            broken = RedisConnectionError("an answer that nobody asked for")
        if answers:
            self._take_answers(answers)
        if broken is not None:
            self.break_off(broken)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # whatever ended it
        """Missing answers will not come."""
        self.break_off(RedisConnectionError(CLOSED))

    def _take_answers(self, answers: Sequence[Any]) -> None:
        """Take the next answers, each of which may be a RedisError: at first, those of the login."""
        found = self._login_answers
        found += answers
        if len(found) < len(self._login) or self._logged_in.done():
            return
        for command, answer in zip(self._login, found, strict=True):
            is_fine = command.is_optional and isinstance(answer, ResponseError)
            if isinstance(answer, Exception) and not is_fine:
                self._logged_in.set_exception(answer)
                self._logged_in.exception()  # nobody may be left to read it
                return
        self._logged_in.set_result(None)


class Link(ServerConnection):
    """A connection for calls: those that go out together are an exchange, and the next one begins when it has ended."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Sendable | None] = []  # whose answer has not come; None: it was given up
        self.began_s = 0.0  # monotonic, of the last exchange
        self._wait: Wait | None = None
        self._ended: Callable[[Link], None] | None = None
        self._held: list[Any] = []  # answers, until WAIT's is there

    def begin(
        self, calls: Sequence[Sendable], wait: Wait | None, ended: Callable[["Link"], None]
    ) -> None:
        """Send the calls that are still wanted; `ended` is called once all of them have their answers.

        With `wait`, they are answered once that many replicas have what the connection wrote.
        """
        self.began_s = monotonic()
        packed: list[bytes] = []
        for call in calls:
            if call.waiter is None or not call.waiter.done():
                self.calls.append(call)
                packed.append(call.packed)
        if not packed:
            ended(self)
            return
        self._wait, self._ended = wait, ended
        if wait is not None:
            words: Any = "WAIT", *wait
            packed.append(hiredis.pack_command(words))
        self._send(packed)

    def _take_answers(self, answers: Sequence[Any]) -> None:
        if self._ended is None:
            super()._take_answers(answers)
            return
        if self._wait is not None:
            held = self._held = [*self._held, *answers]
            if len(held) <= len(self.calls):
                return
            *held, reached = held
            error = _replication_error(self._wait, reached)
            answers = [each if isinstance(each, RedisError) else error or each for each in held]
        calls, self.calls = self.calls[: len(answers)], self.calls[len(answers) :]
        for call, answer in zip(calls, answers, strict=True):
            if call is None:
                continue
            if isinstance(answer, Exception):
                give_up([call], answer)
            else:  # also if nobody waits for it: it tells more than the results
                call.answered(answer)
        if not self.calls:
            self._held = []  # an idle link refers to nothing of its last exchange
            self._ended(self)

    def time_out(self, made_before_s: float) -> None:
        """Give up the calls that were made before that time."""
        for at, call in enumerate(self.calls):
            if call is not None and call.made_s <= made_before_s:
                self.calls[at] = None
                give_up([call], RedisTimeoutError(NO_ANSWER))


class Subscription(ServerConnection):
    """A connection that is subscribed to channels. `receive` is called with each message: its kind, its channel, ...

    `lost` fails with the reason when the connection ends: an error of redis-py, or what `receive` raised.
    """

    def __init__(self, receive: Callable[[list[Any]], None]) -> None:
        super().__init__()
        self.lost: Final = asyncio.get_running_loop().create_future()
        self.received_s = monotonic()  # when the last message came
        self._receive = receive

    def ask(self, *words: str) -> None:
        """Send a command; its answer is a message, too."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(hiredis.pack_command(words))  # type: ignore[arg-type]

    def data_received(self, data: bytes) -> None:
        """Pass on the messages that are complete."""
        if not self._logged_in.done():
            super().data_received(data)
            return
        self.received_s = monotonic()
        try:
            self._reader.feed(data)
            while (message := self._reader.gets()) is not INCOMPLETE:
                if isinstance(message, RedisError):
                    self.break_off(message)
                else:
                    self._receive(message)
        except Exception as error:
            self.break_off(error)

    def break_off(self, error: Exception) -> None:
        """Close the connection."""
        super().break_off(error)
        if not self.lost.done():
            self.lost.set_exception(error)
            self.lost.exception()  # nobody may be left to read it


class Links:
    """The links to a server: one that is free is used again, up to a limit."""

    def __init__(self, pool: ConnectionPool, most: int, wait_s: float) -> None:
        """The links go to where the pool's connections go. `take` waits at most `wait_s` for a free place."""
        self.pool: Final = pool
        self._places: Final = asyncio.Semaphore(most)
        self._wait_s = wait_s
        self._is_closed = False
        self._free: list[Link] = []
        self._used: set[Link] = set()

    async def take(self) -> Link:
        """A connected link, to use until `give_back`. Raises RedisError."""
        if self._is_closed:
            raise RedisConnectionError(CLOSED)
        try:
            async with asyncio.timeout(self._wait_s):
                await self._places.acquire()
        except TimeoutError:
            raise RedisConnectionError(NO_PLACE) from None
        while self._free:
            if (link := self._free.pop()).is_sound:
                self._used.add(link)
                return link
        link = Link()
        self._used.add(link)
        try:
            await link.connect(self.pool)
        except BaseException:
            self.give_back(link)
            raise
        return link

    def give_back(self, link: Link) -> None:
        """Give back a link on which no answer is outstanding."""
        self._used.remove(link)
        if link.is_sound:
            self._free.append(link)
        else:
            link.close()
        self._places.release()

    def drop_free(self) -> None:
        """Close the links that are free."""
        while self._free:
            self._free.pop().close()

    async def aclose(self) -> None:
        """Close all links, for good: calls under way fail."""
        self._is_closed = True
        self.drop_free()
        for link in list(self._used):
            link.close()
        await asyncio.sleep(0)  # for their sockets to be closed


_CONTEXTS: Final[dict[str, tuple[list[object], ssl.SSLContext]]] = {}  # by all options


def shared_context(wanted: RedisSSLContext) -> ssl.SSLContext:
    """The TLS context with these options, made anew when one of its files has changed.

    To make one holds up the loop for 25 ms, as it reads the system's authorities, too. Raises OSError if a file cannot
    be read.
    """
    system = ssl.get_default_verify_paths().cafile
    files = wanted.ca_certs, wanted.ca_path, wanted.certfile, wanted.keyfile, system
    stamps: list[object] = [
        (status.st_ctime_ns, status.st_size, status.st_ino)
        for status in map(os.stat, filter(None, files))
    ]
    options = repr([getattr(wanted, name) for name in wanted.__slots__ if name != "context"])
    known = _CONTEXTS.get(options)
    if known is None or known[0] != stamps:
        wanted.context = None
        known = _CONTEXTS[options] = stamps, wanted.get()
    return known[1]


def _login_of(like: Like) -> list[LoginCommand]:
    """What a connection like this one says first, in one write. Raises UnicodeEncodeError if no bytes stand for it."""
    commands: list[LoginCommand] = []
    if like.username or like.password:
        user = (like.username,) if like.username else ()
        commands.append(_command("AUTH", *user, like.password or ""))
    if like.client_name:
        commands.append(_command("CLIENT", "SETNAME", like.client_name))
    if like.driver_info:
        name, version = like.driver_info.formatted_name, like.driver_info.lib_version
        for field, value in ("LIB-NAME", name), ("LIB-VER", version):
            if value:
                named = _command("CLIENT", "SETINFO", field, str(value))
                commands.append(named._replace(is_optional=True))
    if like.db:
        commands.append(_command("SELECT", str(like.db)))
    return commands


def _command(*words: str) -> LoginCommand:
    packed: Any = hiredis.pack_command(words)  # type: ignore[arg-type]
    return LoginCommand(packed)


def _place(like: Like) -> str:
    return f"{like.host}:{like.port}" if isinstance(like, RedisConnection) else like.path


def _refused(place: str, error: Exception) -> str:
    """The text of an error of connecting, as redis-py writes it."""
    if isinstance(error, OSError) and error.strerror:
        return f"Error {error.errno} connecting to {place}. {error.strerror}."
    return f"Error {error} connecting to {place}."


def _keep_alive(transport: asyncio.Transport, like: RedisConnection) -> None:
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = cast("Mapping[int, int]", like.socket_keepalive_options)
    for option, value in options.items():
        connection.setsockopt(socket.IPPROTO_TCP, option, value)


def _replication_error(wait: Wait, reached: Any) -> RedisError | None:
    """The error for WAIT's answer, None = enough replicas have it.

    If the server refuses WAIT, the call is done all the same: a caller that saw the refusal would repeat the call.
    """
    if isinstance(reached, RedisError) and not isinstance(reached, ResponseError):
        return reached
    if not isinstance(reached, int):
        return NotReplicatedError(f"WAIT: {reached}")
    if reached < wait.replicas:
        return NotReplicatedError(
            f"{reached} of {wait.replicas} replicas have it within {wait.timeout_ms} ms"
        )
    return None
