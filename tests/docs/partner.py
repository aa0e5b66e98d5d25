"""The other side of the examples: a bank or a merchant."""

import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import NamedTuple

from tests.processes import LOOPBACK, free_port


class Answer(NamedTuple):
    """The partner's answer to one call; surrogates in the text are bytes that are not UTF-8."""

    status: int
    text: str
    headers: Mapping[str, str] = MappingProxyType({})


class Partner:
    """An HTTP server that gives each POST the next of its answers, and the last one from then on."""

    def __init__(self, *answers: Answer) -> None:
        self.received: list[str] = []
        self._answers = list(answers)
        self._server = ThreadingHTTPServer((LOOPBACK, free_port()), self._handler())
        self.url = f"http://{LOOPBACK}:{self._server.server_port}"

    def __enter__(self) -> "Partner":
        threading.Thread(target=self._server.serve_forever, args=(0.01,)).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def take(self, body: str) -> Answer:
        self.received.append(body)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        partner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                answer = partner.take(body)
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.text.encode("utf-8", "surrogateescape"))

            def log_message(self, *_: object) -> None:
                """Log nothing on the terminal."""

        return Handler
