"""The program in this process, against a real server."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from delayqueue.cli import main
from tests.processes import Processes, QueueServer, StoreServer


class Ended(NamedTuple):
    """The exit status, and what was printed."""

    status: int
    out: str
    err: str

    def ok(self) -> str:
        """What a call printed; it must succeed."""
        assert (self.status, self.err) == (0, ""), self
        return self.out.removesuffix("\n")

    def failed(self, status: int) -> str:
        """The one line with which a call must fail."""
        assert self.status == status, self
        (line,) = self.err.splitlines()
        return line.removeprefix("delay-queue: ")


@pytest.fixture(scope="module")
def server(processes: Processes, redis_server: StoreServer) -> QueueServer:
    return processes.server(redis_server)


@pytest.fixture
def run(
    server: QueueServer, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Ended]:
    """Runs the program with these arguments."""
    monkeypatch.setenv("DELAYQUEUE_URL", server.url)
    monkeypatch.delenv("DELAYQUEUE_TOKEN", raising=False)

    def run_it(*arguments: str) -> Ended:
        try:
            status = main(arguments)
        except SystemExit as ended:
            status = int(ended.code or 0)
        out, err = capsysbinary.readouterr()
        return Ended(status, out.decode(), err.decode())

    return run_it
