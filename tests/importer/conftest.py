"""An old installation and a new store, each in its own database, and an import between them."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pytest

from delayqueue.engine import importer
from delayqueue.engine.importer import Importer
from delayqueue.store.original import Names, source
from delayqueue.store.original.source import Original
from delayqueue.store.types import JobView
from tests.store.bucket import WHEEL_SLOTS, Bucket
from tests.store.conftest import connect

from .old import OldServer

BEAT_S: Final = 0.02  # a tenth or less of the real value, like all waiting times here
DEAD_S: Final = 0.8
PATIENCE_S: Final = 40.0  # for an import that loops forever; two of these waits are for a lock


@dataclass
class Move:
    """The import from the old server to the bucket."""

    old: OldServer
    new: Bucket

    def original(self) -> Original:
        names = Names(self.old.key_prefix, self.old.bucket_name, self.old.queue_name)
        return Original(self.old.redis, names)

    def importer(self, destination: str = "here") -> Importer:
        return Importer(self.original(), self.new.store, destination)

    async def run(self) -> Importer:
        """Run an import to its end."""
        it = self.importer()
        async with asyncio.timeout(PATIENCE_S):
            await it.run()
        return it

    async def arrived(self, *ids: str) -> dict[str, tuple[str, int]]:
        """State and due second of the jobs that the new store has."""
        views = [await self.new.get(job_id) for job_id in ids]
        return {view.id: (view.state.value, view.due_ms // 1000) for view in views if view}

    async def view(self, job_id: str) -> JobView:
        return await self.new.view(job_id)

    async def left(self) -> set[bytes]:
        """What the old database still holds, except what was set aside and our own keys."""
        keys: list[Any] = [key async for key in self.old.redis.scan_iter()]
        return {key for key in keys if not key.startswith(b"{") and key != b"dq_import:aside"}

    async def set_aside(self) -> dict[str, str]:
        """Why jobs were not taken over."""
        kept: dict[Any, Any] = await self.old.redis.hgetall("dq_import:aside")
        return {job_id.decode(): value.split(b"\n")[0].decode() for job_id, value in kept.items()}


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting times that are seconds in production."""
    monkeypatch.setattr(importer, "PAUSE_S", BEAT_S)
    monkeypatch.setattr(source, "DEAD_S", DEAD_S)


class Setup(NamedTuple):
    """Where the jobs come from and go to."""

    key_prefix: str
    store: str
    one_database: bool = False
    wheel: bool = False


SETUPS: Final = {
    "ouqiang-to-valkey": Setup("", "valkey"),
    "php-cpm-to-redis": Setup("dq_key_", "redis"),
    "ouqiang-to-wheel": Setup("", "redis", wheel=True),
    "within-one-database": Setup("", "redis", one_database=True),
}
in_every_setup: Final = pytest.mark.parametrize(
    "move", SETUPS.values(), ids=SETUPS.keys(), indirect=True
)


@pytest.fixture
async def move(request: pytest.FixtureRequest) -> AsyncIterator[Move]:
    """The first of the setups, unless the test is marked `@in_every_setup`."""
    setup: Setup = getattr(request, "param", SETUPS["ouqiang-to-valkey"])
    store = request.getfixturevalue(f"{setup.store}_server")
    async with (
        connect(request.getfixturevalue("redis_server")) as old_redis,
        connect(store) as redis,
    ):
        old = OldServer(redis if setup.one_database else old_redis, _now_s, setup.key_prefix)
        bucket = Bucket.over(redis, wheel_slots=WHEEL_SLOTS if setup.wheel else 0)
        yield Move(old, bucket)
        assert await bucket.violations() == []


def _now_s() -> int:
    return int(time.time())
