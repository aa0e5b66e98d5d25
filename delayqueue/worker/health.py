"""The worker's own HTTP: /healthz for health checks, /metrics for Prometheus."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager

    from delayqueue.worker.figures import WorkerFigures

READ_S: Final = 10.0  # for a client to send its request


def answering(host: str, port: int, figures: WorkerFigures) -> AbstractContextManager[int]:
    """Answer at this address while the block runs, in threads: also while a handler blocks the loop.

    The block is given the port. Raises OSError, at once, if the address cannot be used.
    """
    server = _Server6 if ":" in host else ThreadingHTTPServer
    return _running(server((host, port), partial(_Request, figures)))


class _Server6(ThreadingHTTPServer):
    address_family = socket.AF_INET6


@contextmanager
def _running(server: ThreadingHTTPServer) -> Generator[int, None, None]:
    with server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, name="health", daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


class _Request(BaseHTTPRequestHandler):
    timeout = READ_S

    def __init__(self, figures: WorkerFigures, *connection: Any) -> None:
        self._figures = figures
        super().__init__(*connection)

    def do_GET(self) -> None:  # the base class's name
        """Answer /healthz or /metrics."""
        match self.path.partition("?")[0]:
            case "/healthz":
                self._healthz()
            case "/metrics":
                self._answer(HTTPStatus.OK, self._figures.text())
            case _:
                self._answer(HTTPStatus.NOT_FOUND, "there are /healthz and /metrics\n")

    def _healthz(self) -> None:
        blocked_s = self._figures.blocked_s
        if blocked_s:
            self._answer(
                HTTPStatus.SERVICE_UNAVAILABLE, f"a handler blocks the loop for {blocked_s:.0f} s\n"
            )
        else:
            self._answer(HTTPStatus.OK, "ok\n")

    def _answer(self, status: HTTPStatus, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Log nothing: probes come every few seconds."""
