"""`durability = fsync`: which stores sync before they answer, and what happens to pushes to one that does not."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import pytest

from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError
from delayqueue.config.values import Address
from delayqueue.domain.job import Job
from delayqueue.errors import Unavailable
from delayqueue.store import durability as asked
from delayqueue.store.buckets import Buckets
from delayqueue.store.connect import connect
from delayqueue.store.durability import Durability, check_durability
from delayqueue.store.health import AILMENTS_BY_CLASS, NotDurableError
from delayqueue.store.servers import Servers
from delayqueue.store.types import Demand
from tests.processes import LOOPBACK, Processes, StoreServer
from tests.store.bucket import VerbStore, calls_of
from tests.waiting import until_async

SYNCING: Final = ("--appendonly", "yes", "--appendfsync", "always")
JOB: Final = Job("topic", "a job", "body", ttr_ms=60_000)
OTHER: Final = Job("topic", "another", "body", ttr_ms=60_000)


@pytest.fixture(params=["redis", "valkey"])
def syncing(request: pytest.FixtureRequest, processes: Processes) -> Iterator[StoreServer]:
    """A store that syncs before it answers."""
    store: StoreServer = getattr(processes, request.param)(*SYNCING)
    yield store
    store.close()


def config_of(store: StoreServer, asked: str = "fsync") -> Config:
    return Config(redis_host=Address(LOOPBACK, store.port), durability=asked)


@asynccontextmanager
async def opened(config: Config) -> AsyncIterator[tuple[Servers, VerbStore]]:
    async with connect(config, None) as servers:
        buckets = Buckets(config.bucket_name, config.queue_name)
        yield servers, VerbStore(servers, buckets, durability=Durability.of(config))


async def test_a_store_that_syncs_before_it_answers_takes_pushes(syncing: StoreServer) -> None:
    async with opened(config_of(syncing)) as (servers, store):
        await check_durability(servers, config_of(syncing))
        assert (await store.push(0, [JOB])).codes == [0]


async def test_pushes_of_the_same_moment_ask_once_whether_it_syncs(syncing: StoreServer) -> None:
    async with opened(config_of(syncing)) as (servers, store):
        redis = servers.of("any key")
        await redis.config_resetstat()
        pushes = (store.push(0, [replace(JOB, id=str(n))]) for n in range(32))
        assert [each.codes for each in await asyncio.gather(*pushes)] == [[0]] * 32
        assert await calls_of(redis, "config|get") == 1


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("appendonly", "no", "appendonly yes"),
        ("appendfsync", "everysec", "appendfsync always"),
        ("appendfsync", "no", "appendfsync always"),
        ("no-appendfsync-on-rewrite", "yes", "no-appendfsync-on-rewrite no"),
    ],
    ids=["no file", "every second", "never", "not during a rewrite"],
)
async def test_a_store_that_answers_first_is_refused_with_the_way_out(
    syncing: StoreServer, key: str, value: str, says: str
) -> None:
    config = config_of(syncing)
    async with opened(config) as (servers, _):
        await servers.of("any key").config_set(key, value)
        with pytest.raises(StartupError) as refused:
            await check_durability(servers, config)
        assert str(refused.value) == (
            "durability = fsync: the store answers before a job is on its disk; "
            f"set `{says}` in its config"
        )
        assert refused.value.key == "durability"
        await check_durability(servers, config_of(syncing, "store"))


@asynccontextmanager
async def endless_rewrites(redis: Any) -> AsyncIterator[None]:
    """Rewrites of the file that begin in the block do not end."""
    await redis.set("a key", "")
    await redis.config_set("rdb-key-save-delay", 10**9)
    yield
    await redis.config_set("rdb-key-save-delay", 0)
    await redis.config_set("appendonly", "no")  # ends the one under way
    await redis.config_set("appendonly", "yes")
    await until_async(lambda: is_idle(redis))


async def is_idle(redis: Any) -> bool:
    return not (await redis.info("persistence"))["aof_rewrite_in_progress"]


@pytest.mark.parametrize("kind", ["redis", "valkey"])
async def test_a_file_that_was_switched_on_counts_from_the_end_of_its_first_rewrite_on(
    processes: Processes, kind: str
) -> None:
    server: StoreServer = getattr(processes, kind)("--appendfsync", "always")
    config = config_of(server)
    async with opened(config) as (servers, store):
        redis = servers.of("any key")
        async with endless_rewrites(redis):
            await redis.config_set("appendonly", "yes")
            await check_durability(servers, config)  # a right setting
            with pytest.raises(Unavailable):
                await store.push(0, [JOB])
            assert store.bucket(0).ailment == AILMENTS_BY_CLASS[NotDurableError]
        assert (await store.push(0, [JOB])).codes == [0]


@pytest.mark.parametrize("kind", ["redis", "valkey"])
async def test_the_file_of_another_process_at_the_same_address_counts_anew(
    processes: Processes, kind: str
) -> None:
    """As after a failover, if the address is a name or a proxy's."""
    server: StoreServer = getattr(processes, kind)("--appendfsync", "always")
    async with opened(config_of(server)) as (servers, store):
        redis = servers.of("any key")
        await redis.config_set("appendonly", "yes")
        await until_async(lambda: is_idle(redis))
        await store.push(0, [JOB])
        server.kill()
        with pytest.raises(Unavailable):  # so it is asked anew
            await store.push(0, [OTHER])
        await asyncio.to_thread(server.start)
        async with endless_rewrites(redis):
            await redis.config_set("appendonly", "yes")
            with pytest.raises(Unavailable, match="before a job is on its disk"):
                await store.push(0, [OTHER])
        assert (await store.push(0, [OTHER])).codes == [0]


async def test_a_usual_rewrite_keeps_no_push_waiting(syncing: StoreServer) -> None:
    """Neither the first one of a server that is known, nor a later one of another."""
    config = config_of(syncing)
    async with opened(config) as (servers, store):
        redis = servers.of("any key")
        await store.push(0, [JOB])
        async with endless_rewrites(redis):
            await redis.bgrewriteaof()
            assert (await redis.info("persistence"))["aof_base_size"] == 0
            assert store.durability.fsync
            store.durability.fsync.doubt(redis)
            assert (await store.push(0, [OTHER])).codes == [0]
        async with endless_rewrites(redis), opened(config) as (_, new):
            await redis.bgrewriteaof()
            assert (await new.push(0, [replace(JOB, id="new")])).codes == [0]
            assert not await is_idle(redis)


async def test_a_store_that_refuses_to_tell_is_refused(syncing: StoreServer) -> None:
    async with opened(config_of(syncing)) as (servers, _):
        redis = servers.of("any key")
        await redis.acl_setuser("default", enabled=True, nopass=True, commands=["-config"])
        with pytest.raises(StartupError, match="refuses CONFIG GET"):
            await check_durability(servers, config_of(syncing))


async def test_a_store_that_stops_syncing_gets_no_pushes_and_its_jobs_are_delivered(
    syncing: StoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asked, "TRUST_S", 0.0)
    async with opened(config_of(syncing)) as (servers, store):
        await store.push(0, [JOB])
        redis = servers.of("any key")
        await redis.config_set("appendfsync", "everysec")
        with pytest.raises(Unavailable):
            await store.push(0, [OTHER])
        assert await store.get(0, ["another"]) == [None]
        [jobs] = (await store.pop(0, [Demand(("topic",), 1)])).jobs
        assert [job.id for job in jobs] == [JOB.id]
        await redis.config_set("appendfsync", "always")
        assert (await store.push(0, [OTHER])).codes == [0]
