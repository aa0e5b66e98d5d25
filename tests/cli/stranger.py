"""A foreign HTTP server: it gives every POST the same answer and keeps the headers."""

import threading
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.processes import LOOPBACK, free_port


class Stranger:
    """Listens while the `with` block runs. `received` holds path and headers of each request."""

    def __init__(self, status: int, body: bytes) -> None:
        self.received: list[tuple[str, Message]] = []
        self._server = ThreadingHTTPServer((LOOPBACK, free_port()), self._handler(status, body))
        self.url = f"http://{LOOPBACK}:{self._server.server_port}"

    def __enter__(self) -> "Stranger":
        threading.Thread(target=self._server.serve_forever, args=(0.01,)).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self, status: int, body: bytes) -> type[BaseHTTPRequestHandler]:
        stranger = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                stranger.received.append((self.path, self.headers))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Log nothing on the terminal."""

        return Handler
