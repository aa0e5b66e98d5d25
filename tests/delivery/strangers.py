"""Targets of webhooks that send what no server should, without end."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from tests.processes import LOOPBACK

CHUNKED: Final = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LASTS_S: Final = 60.0  # what has no end has this one, so that a test fails and does not hang
MANY: Final = 4096  # repeated in one write


class Endless(NamedTuple):
    """What a target sends: `first`, and then `again` and again."""

    first: bytes
    again: bytes


BEFORE_A_HEAD: Final = {
    "103 Early Hints": Endless(b"", b"HTTP/1.1 103 Early\r\nX: y\r\n\r\n"),
    "100 Continue": Endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
}
IN_A_HEAD: Final = {
    "headers": Endless(b"HTTP/1.1 200 OK\r\n", b"X-Y: z\r\n"),
    "a line": Endless(b"HTTP/1.1 200 OK\r\nX-Y: ", b"z"),
}
IN_A_BODY: Final = {
    "a body": Endless(b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n", b"x"),
    "chunks of a byte": Endless(CHUNKED, b"1\r\nx\r\n"),
    "extensions of a chunk": Endless(CHUNKED + b"1", b";x=y"),
    "extensions of chunks": Endless(CHUNKED, b"1;" + b"x" * 900 + b"\r\nx\r\n"),
}
BEHIND_A_BODY: Final = {"trailers": Endless(CHUNKED + b"0\r\n", b"X-Y: z\r\n")}
ENDLESS: Final = BEFORE_A_HEAD | IN_A_HEAD | IN_A_BODY | BEHIND_A_BODY


class Target(NamedTuple):
    """`is_cut_off` is set once it cannot send any more."""

    port: int
    is_cut_off: threading.Event


@contextmanager
def sending(
    what: Endless, tls: ssl.SSLContext | None = None, *, lasts_s: float = LASTS_S
) -> Iterator[Target]:
    """A target that answers each request so."""
    is_cut_off = threading.Event()

    def answer(connection: socket.socket) -> None:
        until_s = time.monotonic() + lasts_s
        try:
            with connection, _secured(connection, tls) as secured:
                secured.recv(65536)
                secured.sendall(what.first)
                while time.monotonic() < until_s:
                    secured.sendall(what.again * MANY)
        except OSError:
            is_cut_off.set()

    with serving(answer) as port:
        yield Target(port, is_cut_off)


def _secured(connection: socket.socket, tls: ssl.SSLContext | None) -> socket.socket:
    return tls.wrap_socket(connection, server_side=True) if tls else connection


@contextmanager
def serving(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """A port at which `answer` gets each connection, in a thread of its own, until the other side breaks it."""

    def serve(connection: socket.socket) -> None:
        with suppress(OSError):
            answer(connection)

    with socket.create_server((LOOPBACK, 0)) as listener:

        def accept() -> None:
            with suppress(OSError):  # closed
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
