"""A store is wiped under a running server (FLUSHALL): no other server may lay its data out differently."""

import shutil
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Final

import pytest
from redis.asyncio import Redis

from tests.api.test_eviction import alarms, is_writable
from tests.api_client import OK, Api, open_api
from tests.figures import scrape
from tests.processes import (
    LOOPBACK,
    ProcessError,
    Processes,
    QueueServer,
    StoreServer,
    run_program,
)
from tests.waiting import until, until_async

BUCKETS: Final = 4
LAYOUT: Final = "{dq_bucket_1}:layout"
FENCE: Final = "{dq_bucket_1}:fence"


def database_of(redis: Any) -> object:
    return redis.get_connection_kwargs()["db"]


async def layout_of(redis: Any) -> dict[bytes, bytes]:
    """Without the marks of this data."""
    marks = {b"id", b"marked", b"emptied", b"former"}
    found = await redis.hgetall(LAYOUT)
    return {name: value for name, value in found.items() if name not in marks}


async def is_claimed(redis: Any) -> bool:
    """Whether the layout is there; the mark of an emptied store may stand beside it earlier."""
    return bool(await redis.hexists(LAYOUT, "bucket_size"))


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
    before = await layout_of(redis)
    await redis.flushdb()
    await until_async(partial(is_claimed, redis))
    assert await layout_of(redis) == before
    database = database_of(redis)
    with pytest.raises(ProcessError, match="bucket_size = 1, but the data in this store was made"):
        processes.server(redis_server, redis__db=database, bucket_size=1)
    async with open_api(server.url) as api:
        for number in range(3 * BUCKETS):
            (await api.push(topic="t", id=f"{number}")).ok()
        jobs = (await api.pop("t", count=3 * BUCKETS)).ok()
        (await api.call("/finish", {"ids": [job["id"] for job in jobs]})).ok()


async def test_the_server_ends_where_somebody_was_faster(redis: Any, server: QueueServer) -> None:
    other = await redis.hgetall(LAYOUT) | {b"bucket_size": b"2"}
    async with redis.pipeline() as transaction:
        transaction.flushdb()
        transaction.hset(LAYOUT, mapping=other)
        await transaction.execute()
    await until(lambda: server.exit_status() is not None)
    assert server.exit_status() != 0
    assert f"bucket_size = {BUCKETS}, but the data in this store was made" in server.logged()


async def is_pushed(api: Api) -> bool:
    return (await api.push(topic="t", id="a")).code == OK


async def test_a_server_whose_buckets_were_changed_claims_what_was_in_force(
    redis: Any, server: QueueServer
) -> None:
    changed = {"bucket_size": "2", "former_bucket_sizes": f"{BUCKETS}", "generation": "1"}
    await redis.hset(LAYOUT, mapping=changed)
    for bucket in range(1, BUCKETS + 1):
        await redis.zadd(f"{{dq_bucket_{bucket}}}:fence", {"generation": 1})
    async with open_api(server.url) as api:
        await until_async(lambda: is_pushed(api))  # it is told of the change
    before = await layout_of(redis)
    await redis.flushdb()
    await until_async(partial(is_claimed, redis))
    assert await layout_of(redis) == before
    await until(server.is_ready)


async def test_a_store_that_was_emptied_is_named_until_somebody_says_that_it_is_new(
    processes: Processes,
) -> None:
    """Also by a server that starts afterwards, and once for all."""
    store = processes.redis()
    server = processes.server(store, redis__db=0, language="en", bucket_size=BUCKETS)
    async with (
        open_api(server.url) as api,
        Redis(host=LOOPBACK, port=store.port) as redis,
    ):
        await until_async(lambda: is_marked(redis))
        assert await emptied(api) == []
        (await api.push(topic="t", id="a", delay=60)).ok()
        await redis.flushall()
        await until_async(lambda: is_named(api))
        (said,) = await emptied(api)
        assert "UTC the store is an empty one, or another one" in said
        assert (await scrape(api)).sum("delayqueue_store_emptied") == 1
        await until(server.is_ready)
        stats: Any = (await api.call("/stats", {})).ok()
        assert stats["store"]["alarms"] == [said]
        later = processes.server(store, redis__db=0, language="en", bucket_size=BUCKETS)
        async with open_api(later.url) as other:
            await until_async(lambda: is_named(other))
            assert await emptied(other) == [said]
            checked = run_program("check", settings=store.settings(0) | {"bucket_size": BUCKETS})
            assert f"warning: {said}\n" in checked.stdout
            (await other.call("/accept-store", {})).ok()  # as the command does
            await until(lambda: "accepted as new, by anybody from 127.0.0.1" in later.logged())
            assert await emptied(other) == []
            await until_async(lambda: is_not_named(api))
        later.stop()
        later.start()
        async with open_api(later.url) as other:
            await until_async(lambda: is_writable(other, 1))
            assert await emptied(other) == []
        await until(lambda: f"no longer: {said}" in server.logged())
        assert f"ERROR delayqueue.store.watch: {said}" in server.logged()
        later.close()


async def test_the_warning_ends_by_itself_when_a_backup_of_the_data_is_restored(
    processes: Processes,
) -> None:
    """Also for a server that started in between, and not when the store is merely emptied once more."""
    store = processes.redis()
    server = processes.server(store, redis__db=0, language="en", bucket_size=BUCKETS)
    async with Redis(host=LOOPBACK, port=store.port) as redis, open_api(server.url) as api:
        await until_async(lambda: is_marked(redis))
        await until_async(lambda: is_not_named(api))
        (await api.push(topic="t", id="a", delay=60)).ok()
        backup: dict[bytes, Any] = {key: await redis.dump(key) async for key in redis.scan_iter()}
        await redis.flushall()
        await until_async(lambda: is_named(api))
        later = processes.server(store, redis__db=0, language="en", bucket_size=BUCKETS)
        async with open_api(later.url) as other:
            await until_async(lambda: is_named(other))
            server.stop()
            await redis.flushall()
            await until_async(lambda: is_marked(redis))
            assert await is_named(other)
            server.start()
            async with redis.pipeline() as transaction:
                transaction.flushall()
                for key, value in backup.items():
                    transaction.restore(key, 0, value)
                await transaction.execute()
            for each in (api, other):
                await until_async(partial(is_not_named, each))
        assert not await redis.hexists(LAYOUT, "emptied")
        (await api.call("/get", {"id": "a"})).ok()
        later.close()


async def test_a_part_of_the_store_that_was_emptied_alone_is_named_too(
    processes: Processes,
) -> None:
    """As when one master of a Cluster starts again without its files, also if no server runs meanwhile."""
    store = processes.redis()
    server = processes.server(store, redis__db=0, language="en", bucket_size=BUCKETS)
    async with Redis(host=LOOPBACK, port=store.port) as redis:
        for bucket in (3, 1):
            async with open_api(server.url) as api:
                await until_async(lambda: is_marked(redis))
                await until_async(lambda: is_not_named(api))
            server.stop()
            keys = [key async for key in redis.scan_iter(f"{{dq_bucket_{bucket}}}:*")]
            await redis.delete(*keys)
            server.start()
            async with open_api(server.url) as api:
                await until_async(lambda: is_named(api))
                (said,) = await emptied(api)
                assert ("the buckets 3 are gone" if bucket == 3 else "another one") in said
                (await api.call("/accept-store", {})).ok()
                assert await emptied(api) == []


@pytest.mark.parametrize("key", [LAYOUT, FENCE])
async def test_a_key_with_a_mark_that_was_dropped_alone_is_marked_again_as_the_jobs_are_there(
    processes: Processes, key: str
) -> None:
    """An eviction takes single keys: nobody may read that the whole store is an empty one."""
    store = processes.redis()
    server = processes.server(store, redis__db=0, language="en", bucket_size=BUCKETS)
    async with Redis(host=LOOPBACK, port=store.port) as redis, open_api(server.url) as api:
        await until_async(lambda: is_marked(redis))
        data_id: Any = await redis.hget(LAYOUT, "id")
        (await api.push(topic="t", id="a", delay=60)).ok()
        await redis.delete(key)
        await until_async(lambda: has_mark(redis, data_id))
        await until_async(lambda: is_writable(api, 1))
        assert await emptied(api) == []
        checked = run_program("check", settings=store.settings(0) | {"bucket_size": BUCKETS})
        assert "warning: since" not in checked.stdout
        assert "emptied" not in checked.stdout
        (await api.call("/get", {"id": "a"})).ok()
    assert "another one" not in server.logged()
    assert "emptied" not in server.logged()


async def has_mark(redis: Any, data_id: bytes) -> bool:
    return bool(
        await redis.hget(LAYOUT, "id")
        and await is_marked(redis)
        and await redis.zscore(FENCE, b"mark " + data_id) is not None
    )


async def is_marked(redis: Any) -> bool:
    return bool(await redis.hget(LAYOUT, "marked") == b"%d" % BUCKETS)


async def emptied(api: Api) -> list[str]:
    ready: Any = (await api.request("GET", "/readyz")).ok()
    return list(ready["alarms"]) if ready and ready.get("emptied") else []


async def is_named(api: Api) -> bool:
    return bool(await emptied(api))


async def is_not_named(api: Api) -> bool:
    return not await emptied(api) and await is_writable(api, 1)


async def test_an_embedded_store_whose_directory_was_deleted_is_said_to_be_in_memory_alone(
    processes: Processes,
) -> None:
    """It answers, and goes on writing to files that nobody finds again."""
    server = processes.server(language="en")
    async with open_api(server.url) as api:
        assert await alarms(api) == []
        shutil.rmtree(server.home / "data")
        await until_async(lambda: is_in_memory_alone(api))
        assert (await scrape(api)).sum("delayqueue_store_durable") == 0


async def is_in_memory_alone(api: Api) -> bool:
    return [each.rpartition(": ")[0] for each in await alarms(api)] == [
        "the socket of the store was deleted while it runs, and likely its files with it"
    ]
