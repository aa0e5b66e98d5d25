"""A server that was installed somewhere, and a short trial of it."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from tests.api_client import open_api
from tests.processes import QueueServer

from .tools import run, say, without_checkout


class Installed(QueueServer):
    """An installed server that does not know this checkout; with its own store."""

    def __init__(self, home: Path, program: list[str], variables: dict[str, str]) -> None:
        super().__init__("installed", home, {})
        # a Redis of this machine must not be found
        self._command = ["env", "PATH=/nowhere", *program]
        self._environment = without_checkout((self._environment or {}) | variables)


async def use(url: str) -> None:
    """Push a job, pop it, finish it."""
    async with open_api(url) as api:
        await api.push(topic="tried", id="one", ttr=60)
        job = (await api.pop("tried", timeout=10)).ok()
        assert job["id"] == "one", job
        (await api.finish("one", receipt=job["receipt"])).ok()


def try_server(
    server: Installed,
    folder: Path,
    health: list[str] | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> None:
    """Start it, use it, stop it; it must not fall back on this checkout."""
    began = time.monotonic()
    server.start()
    say(f"  answers after {time.monotonic() - began:.1f} s")
    if health:
        run(*health, cwd=folder)
    asyncio.run(use(server.url))
    meanwhile()
    assert server.stop() == 0, server.log_tail()
