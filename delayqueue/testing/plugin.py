"""Pytest fixtures: `pytest_plugins = ["delayqueue.testing.plugin"]` in your conftest.py."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

import pytest

from delayqueue.client.api_request import TransportError
from delayqueue.client.blocking import Client
from delayqueue.errors import Unavailable
from delayqueue.testing.queue import Queue

if TYPE_CHECKING:
    from collections.abc import Generator

START_S: Final = 60.0  # a busy machine takes its time
STOP_S: Final = 10.0
LOOK_S: Final = 0.05
OURS: Final = "DELAYQUEUE_"


@pytest.fixture
def delay_queue() -> Queue:
    """A queue in memory, whose clock you turn; `delay_queue.add(worker)` gives its jobs to your handlers."""
    return Queue()


@pytest.fixture(scope="session")
def delay_queue_url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str, None, None]:
    """The URL of a real server with its own store, while the tests run."""
    folder = tmp_path_factory.mktemp("delay-queue")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    environ = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    environ |= {f"{OURS}BIND_ADDRESS": address, f"{OURS}DATA_DIR": str(folder / "data")}
    log = folder / "log"
    with (
        log.open("wb") as out,
        subprocess.Popen(
            [sys.executable, "-m", "delayqueue"], cwd=folder, env=environ, stdout=out, stderr=out
        ) as server,
    ):
        try:
            url = f"http://{address}"
            if not _answers(url, server):
                pytest.fail(f"the server does not start: {log.read_text('utf-8')[-2000:]}")
            yield url
        finally:
            server.terminate()
            try:
                server.wait(STOP_S)
            except subprocess.TimeoutExpired:
                server.kill()


def _answers(url: str, server: subprocess.Popen[bytes]) -> bool:
    until_s = time.monotonic() + START_S
    with Client(url, token="", retries=0) as queue:
        while server.poll() is None and time.monotonic() < until_s:
            try:
                queue.topics()
            except (TransportError, Unavailable):
                time.sleep(LOOK_S)
            else:
                return True
    return False
