"""A bucket over each back end. After each test its contents are proved to be whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import fakeredis
import pytest
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from tests.processes import LOOPBACK
from tests.store.bucket import REAL, Bucket
from tests.store.invariants import violations

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.processes import StoreServer


def connect(server: StoreServer) -> Redis:
    """A connection to a new database, set up as the server does it: no command is sent twice."""
    return Redis(
        host=LOOPBACK,
        port=server.port,
        db=server.new_database(),
        protocol=2,
        retry=Retry(NoBackoff(), 0),
    )


def fake() -> Redis:
    return fakeredis.FakeAsyncRedis(server=fakeredis.FakeServer())


@pytest.fixture(params=["fakeredis", *REAL])
async def redis(request: pytest.FixtureRequest) -> AsyncIterator[Redis]:
    """An empty database of its own for each test. `@on_real_servers` leaves fakeredis out."""
    fixture = f"{request.param}_server"
    async with connect(request.getfixturevalue(fixture)) if request.param in REAL else fake() as it:
        yield it


@pytest.fixture
async def bucket(redis: Redis, request: pytest.FixtureRequest) -> AsyncIterator[Bucket]:
    """A bucket, in which every job must be in exactly one place when the test is over."""
    bucket = Bucket.over(redis)
    yield bucket
    if "poison" not in request.fixturenames:
        assert await violations(redis, bucket.keys) == []


@pytest.fixture
def poison() -> None:
    """For tests that break the contents of the store on purpose: they are not proved to be whole."""
