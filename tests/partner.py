"""The other side of a program: a bank, a merchant, or a server that is none of ours."""

import threading
from collections.abc import Mapping
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import NamedTuple, Self

from tests.processes import LOOPBACK, free_port


class Answer(NamedTuple):
    """The partner's answer to one call; surrogates in the text are bytes that are not UTF-8."""

    status: int
    text: str
    headers: Mapping[str, str] = MappingProxyType({})


class Partner:
    """An HTTP server that gives each request the next of its answers, and the last one from then on.

    `received` holds the body of each request, `heads` its path and headers.
    """

    def __init__(self, *answers: Answer) -> None:
        self.received: list[str] = []
        self.heads: list[tuple[str, Message]] = []
        self._answers = list(answers)
        self._server = ThreadingHTTPServer((LOOPBACK, free_port()), self._handler())
        self.url = f"http://{LOOPBACK}:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,)).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def take(self, path: str, headers: Message, body: str) -> Answer:
        """Note a request, and answer it."""
        self.heads.append((path, headers))
        self.received.append(body)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        partner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                answer = partner.take(self.path, self.headers, body)
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.text.encode("utf-8", "surrogateescape"))

            def do_GET(self) -> None:
                self.do_POST()

            def log_message(self, *_: object) -> None:
                """Log nothing on the terminal."""

        return Handler
