"""The client for asyncio programs."""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final, Self, TypeVar, cast

from delayqueue.client import tracing
from delayqueue.client.api_request import Answer, ApiRequest, TransportError, conversation
from delayqueue.client.base import BaseClient, is_readable
from delayqueue.client.http import BadResponse, Response
from delayqueue.client.made_once import made_once
from delayqueue.client.request_batcher import RequestBatcher
from delayqueue.client.verbs import Verbs
from delayqueue.keepalive import keep_alive

T = TypeVar("T")

HAPPY_EYEBALLS_S: Final = 0.25  # before the next address of a host is tried, too (RFC 8305)
ADDRESS: Final = re.compile(r"[0-9.]+|.*:.*")  # no name


class AsyncClient(BaseClient, Verbs):
    """Client for asyncio: the same methods as Client, as coroutines.

    Several loops, in threads of their own, may share one: each has its own connections. Use it in an `async with`
    block, or await close().
    """

    @made_once
    def _pools(self) -> dict[asyncio.AbstractEventLoop, _Pool]:
        return {}

    @property
    def _pool(self) -> _Pool:
        """The pool of the running loop."""
        loop = asyncio.get_running_loop()
        return self._pools.get(loop) or self._add(loop)

    def _add(self, loop: asyncio.AbstractEventLoop) -> _Pool:
        for one in list(self._pools):
            if one.is_closed():  # nothing can be done with its connections
                self._pools.pop(one, None)  # unless another thread has
        return self._pools.setdefault(loop, _Pool(RequestBatcher(self._send)))

    @property
    def url(self) -> str:
        """The URL of the server."""
        return str(self._address)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections of the running loop."""
        idle = self._pool.idle
        closing = [*idle]
        idle.clear()
        for connection in closing:
            connection.close()
        for connection in closing:
            await connection.closed.wait()

    def stop_polls(self) -> None:
        """End the polls that wait in the running loop.

        Each returns the jobs that the server has sent by now, or raises TransportError. To cancel a
        poll can lose jobs that are on their way: they are delivered again only after their TTR.
        """
        for connection in self._pool.polling:
            connection.end_requests()

    async def send(self, request: ApiRequest[T]) -> T:
        """Send a request, and retry it if that is safe. All verbs use this."""
        with tracing.sending(request, self._address) as traced:
            return await (self._pool.batcher.send(traced) if traced.join else self._send(traced))

    async def _send(self, request: ApiRequest[T]) -> T:
        tries = conversation(request, self._retries)
        pause_s, request = next(tries)
        try:
            while True:
                if pause_s:
                    await asyncio.sleep(pause_s)
                pause_s, request = tries.send(await self._try(request))
        except StopIteration as end:
            result: T = end.value
            return result

    async def _try(self, request: ApiRequest[T]) -> Answer | TransportError:
        try:
            return await self._exchange(request)
        except (OSError, BadResponse) as error:
            return self._failure(error)

    async def _exchange(self, request: ApiRequest[Any]) -> Answer:
        pool = self._pool
        connection = pool.idle_connection() or await self._connect()
        if request.polls:
            pool.polling.add(connection)
        try:
            answer = await connection.exchange(
                self._address.encode(request), request.limit_s(self._timeout_s)
            )
        except BaseException:
            connection.close()  # tells the server that this client no longer waits
            raise
        finally:
            pool.polling.discard(connection)
        if connection.is_usable:
            pool.idle.append(connection)
        else:
            connection.close()
        return answer

    async def _connect(self) -> _Connection:
        async with asyncio.timeout(self._timeout_s):
            loop = asyncio.get_running_loop()
            address = self._address
            options: dict[str, Any] = {}
            # Uvloop's has no such option. An address needs no race, whose cancellation can leave its socket open:
            # asyncio forgets it.
            if isinstance(loop, asyncio.BaseEventLoop) and not ADDRESS.fullmatch(address.host):
                options["happy_eyeballs_delay"] = HAPPY_EYEBALLS_S
            _, connection = await loop.create_connection(
                _Connection, address.host, address.port, ssl=self._tls, **options
            )
        return connection


class _Pool:
    """The connections of one loop, and what joins its requests."""

    def __init__(self, batcher: RequestBatcher) -> None:
        self.batcher = batcher
        self.idle: list[_Connection] = []
        self.polling: set[_Connection] = set()

    def idle_connection(self) -> _Connection | None:
        """An idle connection that the server has not closed in the meantime; None if there is none."""
        while self.idle:
            connection = self.idle.pop()
            if connection.is_usable and not connection.has_ended():
                return connection
            connection.close()
        return None


class _Connection(asyncio.Protocol):
    """A connection that carries one request after the other."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._response = Response()
        self._waiter: asyncio.Future[Answer] | None = None
        self.is_usable = False
        self.closed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport of the new connection."""
        self._transport = cast("asyncio.Transport", transport)
        keep_alive(transport.get_extra_info("socket"))

    async def exchange(self, request: bytes, limit_s: float | None) -> Answer:
        """Send a request and return its answer.

        Raises OSError if the connection breaks, BadResponse if the answer is not HTTP.
        """
        if self._transport is None or self._transport.is_closing():
            raise ConnectionResetError("the connection was closed")
        self.is_usable = False
        self._response = Response()
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        late = TimeoutError("timed out")
        timer = None if limit_s is None else loop.call_later(limit_s, self._settle, late)
        self._transport.write(request)
        try:
            return await self._waiter
        finally:
            if timer is not None:
                timer.cancel()

    def has_ended(self) -> bool:
        """Whether the server has closed the idle connection; a loop that was blocked has not heard of it."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return True
        return is_readable(transport.get_extra_info("socket"))

    def data_received(self, data: bytes) -> None:
        """Parse a piece of the answer."""
        waiter = self._waiter
        if waiter is None:  # no request is open
            self.close()
            return
        try:
            answer = self._response.feed(data)
        except BadResponse as error:
            self._settle(error)
            return
        if answer is not None:
            self.is_usable = self._response.keeps_alive
            self._settle(answer)

    def connection_lost(self, error: Exception | None) -> None:
        """Finish or fail the open request: the connection's end may be that of the answer."""
        self.is_usable = False
        self.closed.set()
        if self._waiter is not None:
            try:
                self._settle(error or self._response.end())
            except BadResponse as incomplete:
                self._settle(incomplete)

    def end_requests(self) -> None:
        """Close this side of the connection: the server ends the poll, and what it has sent before still arrives."""
        if self._transport is None or self._transport.is_closing():
            return
        if self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            self._transport.abort()  # TLS connections cannot be half closed

    def close(self) -> None:
        """Close at once, and drop the open request."""
        self.is_usable = False
        self._waiter = None
        if self._transport is not None:
            self._transport.abort()

    def _settle(self, outcome: Answer | Exception) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is None or waiter.done():
            return
        if isinstance(outcome, Answer):
            waiter.set_result(outcome)
        else:
            waiter.set_exception(outcome)
