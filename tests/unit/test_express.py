"""The express lane and its front, without a store: moments that a client cannot choose from outside."""

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final
from unittest.mock import Mock

import pytest
import uvloop

from delayqueue import tasks
from delayqueue.errors import Unauthorized
from delayqueue.net.connection_limit import ON_THE_WAY_S
from delayqueue.web.app import MOST_PIECES
from delayqueue.web.endpoint import Large, Returnable
from delayqueue.web.express import Express
from delayqueue.web.front import Front
from delayqueue.web.head import Head, read_head
from delayqueue.web.http import PIECE_BYTES, HttpRequest, HttpResponse
from tests.hangups import reset
from tests.processes import LOOPBACK
from tests.shared_limits import limits
from tests.unit.test_front import front
from tests.waiting import Turns, until

from .fronts import Handler, Server, Verb

MOST_BYTES: Final = 1 << 20


@asynccontextmanager
async def lane(handler: Handler | Front) -> AsyncIterator[tuple[Express, int]]:
    """The lane that lets a front answer, or `handler` in it /push and /pop; and its port."""
    loop = asyncio.get_running_loop()
    server = Server(handler if isinstance(handler, Front) else front(handler))
    express = Express(server, limits(), MOST_BYTES)
    listener = await loop.create_server(express.connection, LOOPBACK, 0)
    try:
        yield express, listener.sockets[0].getsockname()[1]
    finally:
        listener.close()
        await close(express, 1)
    assert not express.limits.connections.idle


async def close(express: Express, within_s: float) -> None:
    """End all connections, as a server does that stops."""
    express.drain()
    await express.limits.connections.finish(within_s)
    await express.cancel()
    await express.limits.connections.abort()


def post(path: str, body: bytes, *lines: str) -> bytes:
    head = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *lines, "", ""]
    return "\r\n".join(head).encode() + body


def said(text: str) -> bytes:
    """A body with this text."""
    return json.dumps({"text": text}).encode()


async def test_aiohttp_reads_on_where_the_lane_had_paused() -> None:
    """So much has arrived behind a poll that the lane stops reading; and the next request is not for the lane."""
    go_on = asyncio.Event()

    async def handler(request: HttpRequest, text: str) -> HttpResponse:
        if request.path == "/pop":
            await go_on.wait()
        return HttpResponse(b"%d" % len(text))

    async with lane(handler) as (express, port):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        long = post("/push", said("x" * 100_000))
        writer.write(post("/pop", said("poll")))
        await until(lambda: any(each.pending for each in express.connections))
        [connection] = express.connections
        sent = 0
        while connection.transport.is_reading():
            writer.write(long[sent : sent + 10_000])
            sent += 10_000
            await asyncio.sleep(0.01)
        go_on.set()
        writer.write(long[sent:])
        async with asyncio.timeout(30):
            assert (await reader.readuntil(b"\r\n\r\n4")).startswith(b"HTTP/1.1 200")
            assert (await reader.readuntil(b"\r\n\r\n100000")).startswith(b"HTTP/1.1 200")
        writer.close()


BY_AIOHTTP: Final = "TE: trailers"  # a header that the lane does not answer
BOTH_WAYS: Final = pytest.mark.parametrize("lines", [(), (BY_AIOHTTP,)], ids=["lane", "aiohttp"])


@BOTH_WAYS
async def test_a_client_that_is_found_gone_as_it_is_answered_has_got_nothing(
    lines: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    """The reset has arrived, and the loop has not seen it yet."""
    undelivered: list[str] = []

    async def handler(_: HttpRequest, text: str) -> Returnable[HttpResponse]:
        reset(client)
        return Returnable(HttpResponse(b"for nobody"), lambda: undelivered.append("told"))

    async with lane(handler) as (_, port):
        client = socket.create_connection((LOOPBACK, port))
        client.sendall(post("/pop", said("poll"), *lines))
        await until(lambda: undelivered == ["told"])
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


@BOTH_WAYS
async def test_a_connection_that_is_lost_while_it_is_answered_holds_nothing(
    lines: tuple[str, ...],
) -> None:
    held_bytes: list[int] = []

    async def handler(_: HttpRequest, text: str) -> HttpResponse:
        unanswered = express.limits.unanswered
        await until(lambda: unanswered.bytes > len(request))
        held_bytes.append(unanswered.bytes)
        [connection] = express.connections
        connection.abort()
        await asyncio.sleep(60)
        return HttpResponse(b"for nobody")

    async with lane(handler) as (express, port):
        _, writer = await asyncio.open_connection(LOOPBACK, port)
        request = post("/pop", b"{}" + b" " * 40_000, *lines)
        writer.write(request * 3)
        await until(lambda: bool(held_bytes) and not express.connections)
        for _ in range(10):
            await asyncio.sleep(0)
        writer.close()
        assert express.limits.unanswered.bytes == 0


def test_nothing_behind_a_request_that_closes_is_answered() -> None:
    """Nor after its answer, too long for the client's buffers, has finally been read. The loop is the server's."""
    uvloop.run(_close_with_more_behind())


async def _close_with_more_behind() -> None:
    answered: list[str] = []

    async def handler(request: HttpRequest, text: str) -> HttpResponse:
        answered.append(text)
        return HttpResponse(b"x" * (16 << 20))

    async with lane(handler) as (_, port):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        closing = post("/push", said("first")).replace(b"Host: x", b"Host: x\r\nConnection: close")
        writer.write(closing + post("/push", said("second")))
        await until(lambda: bool(answered))
        async with asyncio.timeout(30):
            assert len(await reader.read()) > 16 << 20
        writer.close()
    assert answered == ["first"]


@pytest.mark.parametrize("extra", [b"", b"Expect: 100-continue\r\n"], ids=["lane", "aiohttp"])
async def test_others_get_their_turn_while_a_large_answer_is_written(
    extra: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, turns = bytes(range(256)) * (32 << 10), Turns()
    written: list[tuple[int, int]] = []

    async def handler(request: HttpRequest, text: str) -> HttpResponse:
        return HttpResponse(answer)

    transports: Any = getattr(asyncio.selector_events, "_SelectorSocketTransport")  # noqa: B009
    write = transports.write

    def recording(transport: asyncio.Transport, data: bytes) -> None:
        if transport.get_extra_info("sockname")[1] == port:
            written.append((turns.count, len(data)))
        write(transport, data)

    def recording_pieces(transport: asyncio.Transport, pieces: list[bytes]) -> None:
        recording(transport, b"".join(pieces))

    monkeypatch.setattr(transports, "write", recording)
    # with which aiohttp writes head and body since Python 3.12
    monkeypatch.setattr(transports, "writelines", recording_pieces)
    async with lane(handler) as (_, port), turns:
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        writer.write(post("/push", said("first")).replace(b"Host: x\r\n", b"Host: x\r\n" + extra))
        async with asyncio.timeout(30):
            await reader.readuntil(b"\r\n\r\n")
            if extra:
                await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(len(answer)) == answer
        writer.close()
    large = [(turn, size) for turn, size in written if size > 1000]
    assert max(size for _, size in large) <= PIECE_BYTES + len("the head of the answer") * 10
    assert len({turn for turn, _ in large}) == len(large) >= len(answer) / PIECE_BYTES


CHUNKED: Final = b"POST /push HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
LONG_BYTES: Final = 40_000


@pytest.mark.parametrize(
    "body",
    [
        b"".join(b"1\r\n%c\r\n" % byte for byte in b'{"text":"%b"}' % (b"x" * LONG_BYTES)),
        b'%x\r\n{"text":"%b"}%b\r\n'
        % (11 + LONG_BYTES * 5, b"x" * LONG_BYTES, b"\r\n\r\n" * LONG_BYTES),
    ],
    ids=["many chunks", "many empty lines in one"],
)
async def test_a_body_in_odd_chunks_arrives_and_others_get_their_turn(body: bytes) -> None:
    """aiohttp stops reading if it holds many chunks. Where a body may end, it has to be asked whether it does."""

    async def handler(_: HttpRequest, text: str) -> HttpResponse:
        return HttpResponse(b"%d" % len(text))

    async with lane(handler) as (_, port), Turns() as turns:
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        writer.write(CHUNKED + body + b"0\r\n\r\n" + post("/push", said("next")))
        async with asyncio.timeout(60):
            await reader.readuntil(b"\r\n\r\n%d" % LONG_BYTES)
            await reader.readuntil(b"\r\n\r\n4")
        assert turns.count > body.count(b"\r\n\r\n") / (4 * MOST_PIECES)
        writer.close()


# Behind a head that has arrived earlier, or behind what looks like the end.
BAD_CHUNKS: Final = {
    "no size": b"zz\r\n",
    "bare line feeds": b"0\n\n",
    "behind chunks": b"1\r\na\r\n" * 63 + b"0\n\n",
    "behind an empty line": b"5\r\n\r\n\r\n \r\nzz\r\n",
    "behind more chunks than aiohttp takes at once": b"1\r\na\r\n" * 40_000 + b"0\n\n",
    "before another request": b"zz\r\n" + post("/push", said("next")),
}


@pytest.mark.parametrize("ends", [False, True], ids=["the client waits", "the client ends"])
@pytest.mark.parametrize("bad", BAD_CHUNKS.values(), ids=BAD_CHUNKS)
async def test_a_bad_chunk_behind_the_head_is_answered_at_once_and_ends_the_connection(
    bad: bytes, *, ends: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """aiohttp would answer it behind the request, whose end never comes."""

    async def handler(_: HttpRequest, text: str) -> HttpResponse:
        raise AssertionError("it has not arrived")

    async with lane(handler) as (express, port):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        writer.write(CHUNKED)
        await until(lambda: any(each.pending for each in express.connections))
        writer.write(bad)
        if ends:
            writer.write_eof()
        head, answer = await read_answer(reader)
        assert head.startswith(b"HTTP/1.1 400 ")
        assert b"Connection: close" in head
        assert answer["code"] == 1
        assert answer["message"].startswith("this is not a valid HTTP request: ")
        await until(lambda: not express.connections, within_s=5)
        writer.close()
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


@pytest.mark.parametrize(
    ("first", "bad"),
    [(b"", b"zz\r\n"), (b"1\r\na", b"\r\n0\n\n")],
    ids=["the first chunk", "with the end of another"],
)
async def test_a_bad_chunk_behind_the_answer_ends_the_connection_at_once(
    first: bytes, bad: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """aiohttp reads the rest of a body for 10 s, and may not notice that it has failed."""
    async with lane(Verb().front()) as (express, port):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        writer.write(CHUNKED.replace(b"/push", b"/nowhere") + first)
        assert (await read_answer(reader))[0].startswith(b"HTTP/1.1 404 ")
        for _ in range(10):
            await asyncio.sleep(0)  # aiohttp has read the first chunk
        writer.write(bad)
        await until(lambda: not express.connections, within_s=5)
        writer.close()
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


@pytest.mark.parametrize(
    ("limit", "sent"),
    [("HEAD_S", b"GET /push HTTP/1.1\r\nHost: x\r\nX: "), ("READ_S", CHUNKED + b"5\r\n")],
)
async def test_a_request_that_arrives_too_slowly_is_ended_however_often_a_byte_comes(
    limit: str, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With part of its head, the connection ends; with part of its body, the client is told."""

    async def handler(_: HttpRequest, text: str) -> HttpResponse:
        return HttpResponse()

    for name in ("LOOK_S", limit):
        monkeypatch.setattr(f"delayqueue.web.express.{name}", 0.1)
    async with lane(handler) as (_, port):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        writer.write(sent)
        answering = asyncio.create_task(reader.read(12))
        while not answering.done():
            writer.write(b"a" if sent.startswith(b"GET") else b"")
            await asyncio.sleep(0.01)
        got = b""
        with suppress(ConnectionError):  # a byte may be on its way to the connection that ends
            got = await answering
        assert got == (b"" if sent.startswith(b"GET") else b"HTTP/1.1 408")
        writer.close()


@BOTH_WAYS
async def test_a_connection_that_was_used_may_be_idle_for_longer(
    lines: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proxies keep such connections, and do not send a push again if one is closed at that moment."""

    async def handler(_: HttpRequest, text: str) -> HttpResponse:
        return HttpResponse(json.dumps(text).encode())

    monkeypatch.setattr("delayqueue.web.express.LOOK_S", 0.01)
    async with lane(handler) as (_, port):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        writer.write(post("/push", said("one"), *lines))
        await read_answer(reader)
        with monkeypatch.context() as hasty:
            hasty.setattr("delayqueue.web.express.HEAD_S", 0.01)
            unused, other = await asyncio.open_connection(LOOPBACK, port)
            assert await unused.read() == b""
        writer.write(post("/push", said("two"), *lines))
        _, answer = await read_answer(reader)
        assert answer == "two"
        for each in (writer, other):
            each.close()


async def test_a_connection_makes_room_once_its_client_has_read_the_last_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("delayqueue.net.connection_limit.SPARED_S", 0.0)
    answered = 0

    async def handler(_: HttpRequest, text: str) -> HttpResponse:
        nonlocal answered
        answered += 1
        return HttpResponse(b"x" * PIECE_BYTES)

    async with lane(handler) as (express, port):
        limit = express.limits.connections
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        await until(lambda: bool(express.connections))
        [connection] = express.connections
        while not connection._is_stalled:
            before = answered
            writer.write(post("/push", said("")))
            await until(lambda: answered > before and connection in limit.idle)  # noqa: B023
        assert not limit.make_room()
        for _ in range(answered):
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            assert len(await reader.readexactly(PIECE_BYTES)) == PIECE_BYTES
        await until(lambda: not connection._is_stalled)
        assert limit.make_room()
        await until(lambda: not express.connections)
        assert not limit.idle
        writer.close()


async def test_an_answer_that_repeats_has_the_date_of_its_second_and_closes_where_it_is_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def handler(_: HttpRequest, text: str) -> HttpResponse:
        raise AssertionError(text)

    now_s = 1_600_000_000.0
    monkeypatch.setattr("delayqueue.web.express.time", lambda: now_s)
    one, other = HttpResponse(b"one", repeats=True), HttpResponse(b"other", repeats=True)
    async with lane(handler) as (express, _):
        written = express.written(one, closes=False)
        assert b"Date: Sun, 13 Sep 2020 12:26:40 GMT\r\n" in written
        assert express.written(one, closes=False) is written
        assert express.written(other, closes=False).endswith(b"\r\n\r\nother")
        assert b"Connection: close\r\n" in express.written(one, closes=True)
        assert express.written(one, closes=False) is written
        now_s += 1
        assert express.written(one, closes=False) == written.replace(b"26:40", b"26:41")


async def test_a_head_is_read_once_however_slowly_its_body_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise a client could make the server read 4 kB again for each byte that it sends."""
    reads = []

    def read(raw: bytes) -> Head | None:
        reads.append(raw)
        return read_head(raw)

    async def handler(request: HttpRequest, text: str) -> HttpResponse:
        return HttpResponse(text.encode())

    monkeypatch.setattr("delayqueue.web.express.read_head", read)
    async with lane(handler) as (_, port):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        writer.write(post("/push", said("0123456789"))[:-12])
        for digit in b'0123456789"}':
            await asyncio.sleep(0.01)
            writer.write(bytes([digit]))
        async with asyncio.timeout(30):
            await reader.readuntil(b"0123456789")
        writer.close()
    assert len(reads) == 2


async def read_answer(reader: asyncio.StreamReader) -> tuple[bytes, Any]:
    """The head and the body of the next answer."""
    async with asyncio.timeout(30):
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.partition(b"Content-Length: ")[2].split(b"\r")[0])
        return head, json.loads(await reader.readexactly(length))


async def test_a_request_behind_one_whose_verb_is_under_way_waits_for_it() -> None:
    verb = Verb()
    async with lane(verb.front()) as (_, port):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        writer.write(post("/push", b"{}") * 2)
        for number in (1, 2):
            await until(lambda: len(verb.calls) == number)  # noqa: B023  # called before the next
            for _ in range(10):
                await asyncio.sleep(0)
            assert len(verb.calls) == number
            verb.calls[-1].set_result(number)
            assert (await read_answer(reader))[1]["data"] == number
        writer.close()


@pytest.mark.parametrize("is_back", [False, True], ids=["while it is under way", "as it returns"])
async def test_a_client_that_leaves_its_verb_is_no_error(
    *, is_back: bool, caplog: pytest.LogCaptureFixture
) -> None:
    verb = Verb()
    async with called(verb) as (express, client):
        if is_back:  # the result and the reset arrive in one turn of the loop
            verb.calls[0].set_result("for nobody")
        reset(client)
        await until(lambda: not express.connections)
        await until(verb.calls[0].done)
        assert (verb.calls[0].cancelled(), verb.left) == (not is_back, int(not is_back))
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


@pytest.mark.parametrize("result", [True, False], ids=["in the call", "in the answer"])
async def test_a_defect_beside_a_verb_is_logged_and_not_shown(
    result: bool, caplog: pytest.LogCaptureFixture
) -> None:
    verb = Verb()
    async with lane(verb.front()) as (_, port):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        bad = post("/push", b"{}")
        writer.write(bad.replace(b"Host: x", b"Host: x\r\nIs: a defect") if result else bad)
        if not result:
            await until(lambda: bool(verb.calls))
            verb.calls[0].set_result("a defect")
        head, answer = await read_answer(reader)
        assert head.startswith(b"HTTP/1.1 503")
        assert "secret" not in str(answer)
        name = head.partition(b"X-Request-Id: ")[2].split(b"\r")[0].decode()
        assert f"POST /push failed, request {name}" in caplog.text
        assert "a secret" in caplog.text
        writer.write(post("/push", b"{}"))
        await until(lambda: len(verb.calls) == 2 - result)
        verb.calls[-1].set_result("well")
        assert (await read_answer(reader))[1]["data"] == "well"
        writer.close()


@BOTH_WAYS
async def test_the_log_says_where_a_defect_is(
    lines: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(_: HttpRequest, text: str) -> HttpResponse:
        await asyncio.sleep(0)
        raise KeyError(text)

    async with lane(handler) as (_, port):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        writer.write(post("/push", said("a secret"), *lines))
        assert (await read_answer(reader))[0].startswith(b"HTTP/1.1 503")
        writer.close()
    assert "in handler\n    raise KeyError(text)" in caplog.text


async def test_errors_of_requests_that_came_at_once_are_answered_one_a_turn() -> None:
    """Neither do they nest, nor do others wait for all of them."""
    count = 500
    async with lane(Verb().front()) as (_, port), Turns() as turns:
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        writer.write(post("/push", b"{}").replace(b"Host: x", b"Host: x\r\nIs: a defect") * count)
        before = turns.count
        for _ in range(count):
            assert (await read_answer(reader))[0].startswith(b"HTTP/1.1 503")
        assert turns.count - before >= count
        writer.close()


async def test_a_request_whose_verb_is_given_up_is_not_left_without_an_end() -> None:
    verb = Verb()
    async with lane(verb.front()) as (_, port):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        writer.write(post("/push", b"{}"))
        await until(lambda: bool(verb.calls))
        verb.calls[0].cancel()
        async with asyncio.timeout(30):
            with suppress(ConnectionError):
                assert await reader.read() == b""
        writer.close()


async def test_a_lane_that_closes_waits_for_verbs_that_are_under_way() -> None:
    verb = Verb()
    async with lane(verb.front()) as (express, port):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        writer.write(post("/push", b"{}"))
        await until(lambda: bool(verb.calls))
        closing = asyncio.create_task(close(express, 30))
        await asyncio.sleep(0.05)
        assert not closing.done()
        verb.calls[0].set_result("well")
        head, answer = await read_answer(reader)
        assert b"Connection: close" in head
        assert answer["data"] == "well"
        await closing
        writer.close()


@BOTH_WAYS
@pytest.mark.parametrize("begun_bytes", [0, 3], ids=["none of it", "a part of its body"])
async def test_a_lane_that_closes_answers_a_request_that_was_on_its_way(
    lines: tuple[str, ...], begun_bytes: int
) -> None:
    """Its sender, such as a proxy, has found the connection open, and may not send it again."""

    async def handler(_: HttpRequest, text: str) -> HttpResponse:
        return HttpResponse(json.dumps(text).encode())

    async with lane(handler) as (express, port):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        await until(lambda: bool(express.connections))
        request = post("/push", said("late"), *lines)
        begun = request[: request.index(b"\r\n\r\n") + 4 + begun_bytes] if begun_bytes else b""
        writer.write(begun)
        closing = asyncio.create_task(close(express, 30))
        await asyncio.sleep(2 * ON_THE_WAY_S if begun else 0)
        writer.write(request.removeprefix(begun))
        async with asyncio.timeout(30):
            head, answer = await read_answer(reader)
        assert (b"Connection: close" in head, answer) == (True, "late")
        await closing
        writer.close()


async def test_a_lane_that_has_waited_long_enough_gives_up_its_verbs() -> None:
    verb = Verb()
    async with called(verb) as (express, _):
        await close(express, 0.05)
        assert verb.calls[0].cancelled()
        await until(lambda: not express.connections)


@asynccontextmanager
async def called(verb: Verb) -> AsyncIterator[tuple[Express, socket.socket]]:
    """The lane and a client that reads nothing by itself, and whose call is under way."""
    async with lane(verb.front()) as (express, port):
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect((LOOPBACK, port))
            client.sendall(post("/push", b"{}"))
            await until(lambda: bool(verb.calls))
            yield express, client


# More than the buffers of both sides, at once or by turns.
LONG: Final = [
    pytest.param("x" * (16 << 20), id="at once"),
    pytest.param(Large(["x" * (1 << 20)] * 16), id="by turns"),
]


async def test_what_must_arrive_is_given_back_if_its_client_left_as_it_came() -> None:
    """The result and the reset have arrived in one turn of the loop."""
    verb = Verb(lends=True)
    async with called(verb) as (express, client):
        verb.calls[0].set_result("a job")
        reset(client)
        await until(lambda: not express.connections)
        await until(lambda: bool(verb.returned))
        for _ in range(10):
            await asyncio.sleep(0)
    assert (verb.returned, verb.left) == (["a job"], 0)


@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("data", ["a job", Large(["a job"] * 100)], ids=["at once", "by turns"])
async def test_what_must_arrive_is_given_back_once_if_its_connection_ends_in_any_turn(
    data: object, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also before a task has begun to write large data. Data that was written may be in the client's hands."""
    monkeypatch.setattr(tasks, "TURN_S", 0)
    verb = Verb(lends=True)
    async with called(verb) as (express, client):
        verb.calls[0].set_result(data)
        for _ in range(turns):
            await asyncio.sleep(0)
        [connection] = express.connections
        connection.connection_lost(None)
        connection.abort()
        client.setblocking(False)
        for _ in range(10):
            await asyncio.sleep(0.01)
        arrived = b""
        with suppress(ConnectionError, BlockingIOError):
            arrived = client.recv(1 << 16)
        assert len(verb.returned) == (0 if arrived else 1)


@pytest.mark.parametrize("closes", [False, True], ids=["its client leaves", "the lane closes"])
@pytest.mark.parametrize("data", LONG)
async def test_what_must_arrive_is_given_back_if_it_ends_while_it_is_sent(
    data: object, *, closes: bool
) -> None:
    verb = Verb(lends=True)
    async with called(verb) as (express, client):
        verb.calls[0].set_result(data)
        [connection] = express.connections
        await until(lambda: connection._is_stalled)
        await asyncio.sleep(0.05)
        assert verb.returned == []
        if closes:
            await close(express, 0.05)
        else:
            reset(client)
        await until(lambda: bool(verb.returned))
        await until(lambda: not express.connections)
        await asyncio.sleep(0.01)
    assert (verb.returned, verb.left) == ([data], 0)


@pytest.mark.parametrize("data", LONG)
async def test_what_has_arrived_slowly_is_not_given_back_and_the_next_request_is_answered(
    data: object,
) -> None:
    verb = Verb(lends=True)
    async with called(verb) as (express, client):
        client.sendall(post("/push", b"{}"))
        verb.calls[0].set_result(data)
        [connection] = express.connections
        await until(lambda: connection._is_stalled)
        await asyncio.sleep(0.05)
        assert len(verb.calls) == 1
        client.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=client, limit=64 << 20)
        assert len((await read_answer(reader))[1]["data"]) >= 16
        await until(lambda: len(verb.calls) == 2)
        verb.calls[1].set_result("another job")
        assert (await read_answer(reader))[1]["data"] == "another job"
        reset(client)
        await until(lambda: not express.connections)
        writer.close()
    assert (verb.returned, verb.left) == ([], 0)


async def test_what_cannot_be_answered_is_given_back() -> None:
    verb = Verb(lends=True)
    async with called(verb) as (_, client):
        verb.calls[0].set_result(defect := object())  # no JSON
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        assert (await loop.sock_recv(client, 100)).startswith(b"HTTP/1.1 503")
    assert verb.returned == [defect]


async def test_what_a_client_may_no_longer_have_is_given_back() -> None:
    """Its token was taken away while the call was under way."""
    verb = Verb(lends=True)
    async with called(verb) as (express, client):
        guard = express.server.front._api.guard
        guard.revision += 1
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(guard, "check_again", Mock(side_effect=Unauthorized))
            verb.calls[0].set_result(Large([]))
            client.setblocking(False)
            loop = asyncio.get_running_loop()
            assert (await loop.sock_recv(client, 100)).startswith(b"HTTP/1.1 401")
    assert verb.returned == [Large([])]
