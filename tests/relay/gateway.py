"""A way to a server that can hold back what it answers."""

import socket
import threading
from contextlib import suppress
from typing import Any, Self

from tests.processes import LOOPBACK, POLL_S


class Gateway:
    """Hands requests on to a server, and answers back, or holds those back that say what was done.

    `held` is set when an answer is held back. What a relay tells of its outbox (/whoami) is always answered.
    """

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server((LOOPBACK, 0))
        self.url = f"http://{LOOPBACK}:{self._listener.getsockname()[1]}"
        self._open = threading.Event()
        self._open.set()
        self.held = threading.Event()

    def hold(self) -> None:
        """Let no answer of a verb through from now on."""
        self._open.clear()

    def release(self) -> None:
        """Let all answers through."""
        self._open.set()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.set()
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection((LOOPBACK, self._to))
                tells = threading.Event()
                for of, to, is_answer in ((client, server, False), (server, client, True)):
                    arguments: Any = (of, to, tells, is_answer)
                    threading.Thread(target=self._pass, args=arguments, daemon=True).start()

    def _pass(
        self, of: socket.socket, to: socket.socket, tells: threading.Event, is_answer: bool
    ) -> None:
        with suppress(OSError), of, to:
            while data := of.recv(65_536):
                if is_answer:
                    while not (tells.is_set() or self._open.wait(POLL_S)):
                        self.held.set()
                elif data.startswith(b"POST "):
                    (tells.set if data.startswith(b"POST /whoami ") else tells.clear)()
                to.sendall(data)
