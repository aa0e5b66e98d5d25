"""A store is wiped under a running server (FLUSHALL): no other server may lay its data out differently."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Final

import pytest
from redis.asyncio import Redis

from tests.api_client import open_api
from tests.processes import LOOPBACK, ProcessError, Processes, QueueServer, StoreServer
from tests.waiting import until, until_async

BUCKETS: Final = 4
LAYOUT: Final = "{dq_bucket_1}:layout"


def database_of(redis: Any) -> object:
    return redis.get_connection_kwargs()["db"]


async def is_claimed(redis: Any) -> bool:
    return bool(await redis.exists(LAYOUT))


@pytest.fixture
async def redis(
    redis_server: StoreServer,
) -> AsyncIterator[Any]:  # its types are not those of its answers
    database = redis_server.new_database()
    async with Redis(host=LOOPBACK, port=redis_server.port, db=database) as redis:
        yield redis


@pytest.fixture
def server(processes: Processes, redis_server: StoreServer, redis: Redis) -> QueueServer:
    database = database_of(redis)
    return processes.server(redis_server, redis__db=database, bucket_size=BUCKETS)


async def test_the_server_claims_the_layout_again_and_goes_on(
    processes: Processes, redis_server: StoreServer, redis: Any, server: QueueServer
) -> None:
    before = await redis.hgetall(LAYOUT)
    await redis.flushdb()
    await until_async(partial(is_claimed, redis))
    assert await redis.hgetall(LAYOUT) == before
    database = database_of(redis)
    with pytest.raises(ProcessError, match="bucket_size = 1, but the data in this store was made"):
        processes.server(redis_server, redis__db=database, bucket_size=1)
    async with open_api(server.url) as api:
        for number in range(3 * BUCKETS):
            (await api.push(topic="t", id=f"{number}")).ok()
        jobs = (await api.pop("t", count=3 * BUCKETS)).ok()
        (await api.call("/finish", {"ids": [job["id"] for job in jobs]})).ok()
    server.close()


async def test_the_server_ends_where_somebody_was_faster(redis: Any, server: QueueServer) -> None:
    other = await redis.hgetall(LAYOUT) | {b"bucket_size": b"2"}
    async with redis.pipeline() as transaction:
        transaction.flushdb()
        transaction.hset(LAYOUT, mapping=other)
        await transaction.execute()
    await until(lambda: server.exit_status() is not None)
    assert server.exit_status() != 0
    assert f"bucket_size = {BUCKETS}, but the data in this store was made" in server.logged()


async def test_a_server_whose_buckets_were_changed_claims_what_was_in_force(
    redis: Any, server: QueueServer
) -> None:
    changed = {"bucket_size": "2", "former_bucket_sizes": f"{BUCKETS}", "generation": "1"}
    await redis.hset(LAYOUT, mapping=changed)
    for bucket in range(1, BUCKETS + 1):
        await redis.zadd(f"{{dq_bucket_{bucket}}}:fence", {"generation": 1})
    async with open_api(server.url) as api:
        (await api.push(topic="t", id="a")).ok()  # it is told of the change
    before = await redis.hgetall(LAYOUT)
    await redis.flushdb()
    await until_async(partial(is_claimed, redis))
    assert await redis.hgetall(LAYOUT) == before
    assert server.is_ready()
    server.close()
