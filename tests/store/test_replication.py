"""`durability = replica`: what replicas must have before an answer, and what remains of it when one takes over."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, Final, NamedTuple

import pytest

from delayqueue.config.config import MOST_REPLICA_TIMEOUT_MS, Config
from delayqueue.config.startup import StartupError
from delayqueue.config.values import Address
from delayqueue.domain.job import IfExists, Job
from delayqueue.errors import Unavailable
from delayqueue.store import durability as replication
from delayqueue.store.buckets import Buckets
from delayqueue.store.connect import connect
from delayqueue.store.durability import Durability, check_durability, replica_warnings
from delayqueue.store.servers import Servers
from delayqueue.store.types import Demand
from delayqueue.store.verbs import GET, Ending
from delayqueue.tasks import cancel_all
from faults.proxy import Proxy
from tests.clusters import MASTER_NAME, SAFE, UNHURRIED_MS, StoreCluster, WatchedStore, ask
from tests.processes import LOOPBACK, WITHOUT_FUNCTIONS, Processes, StoreServer
from tests.store.bucket import VerbStore
from tests.waiting import until, until_async

TIMEOUT_MS: Final = 1000
LONG_S: Final = 600  # that a replica may be silent, so that a busy machine does not keep a call from being begun
PATIENT: Final = {
    "redis_replica_timeout_ms": MOST_REPLICA_TIMEOUT_MS
}  # a busy machine takes its time
PUSHERS: Final = 8
ADDED: Final = 0


class Pair(NamedTuple):
    """A master and its only replica."""

    master: StoreServer
    replica: StoreServer


@pytest.fixture(
    params=[pytest.param("redis", marks=pytest.mark.seldom), "valkey", "without functions"]
)
def pair(request: pytest.FixtureRequest, processes: Processes) -> Iterator[Pair]:
    start = processes.valkey if request.param == "valkey" else processes.redis
    options = (*SAFE, *(WITHOUT_FUNCTIONS if request.param == "without functions" else ()))
    master = start(*options)
    replica = start(*options, "--replicaof", f"{LOOPBACK} {master.port}")
    yield Pair(master, replica)
    replica.close()
    master.close()


def config_of(server: StoreServer, **settings: Any) -> Config:
    asked: dict[str, Any] = {"durability": "replica", "redis_replica_timeout_ms": TIMEOUT_MS}
    return Config(redis_host=Address(LOOPBACK, server.port), **asked | settings)


@asynccontextmanager
async def opened(config: Config) -> AsyncIterator[tuple[VerbStore, Servers]]:
    async with connect(config, None) as servers:
        buckets = Buckets(config.bucket_name, config.queue_name)
        yield VerbStore(servers, buckets, durability=Durability.of(config)), servers


async def until_followed(pair: Pair) -> None:
    await until(lambda: ask(pair.replica, "ROLE")[3:4] == ["connected"])
    await until(lambda: ask(pair.master, "WAIT", 1, 10) == 1)


@asynccontextmanager
async def followed(pair: Pair, **settings: Any) -> AsyncIterator[VerbStore]:
    """The master's store, which its replica follows."""
    await until_followed(pair)
    async with opened(config_of(pair.master, **settings)) as (store, _):
        yield store


def job(job_id: str) -> Job:
    return Job("topic", job_id, "body", ttr_ms=60_000)


async def push(store: VerbStore, *ids: str) -> None:
    assert set((await store.push(0, [job(each) for each in ids])).codes) == {ADDED}


async def place(store: VerbStore, *ids: str) -> None:
    """Push jobs, again and again until a replica has them: on a busy machine that can take more than TIMEOUT_MS."""
    jobs = [replace(job(each), if_exists=IfExists.KEEP) for each in ids]

    async def is_done() -> bool:
        with suppress(Unavailable):
            return bool(await store.push(0, jobs))
        return False

    await until_async(is_done)


async def promoted(pair: Pair) -> Config:
    """Lose the master, and promote the replica."""
    pair.master.kill()
    pair.replica.thaw()
    ask(pair.replica, "REPLICAOF", "NO", "ONE")
    return config_of(pair.replica, durability="store")


async def missing(config: Config, ids: list[str]) -> list[str]:
    async with opened(config) as (store, _):
        views = await store.all_of(GET, ids)
    return [each for each, view in zip(ids, views, strict=True) if view is None]


async def test_all_pushes_acknowledged_before_a_kill_are_on_the_replica(pair: Pair) -> None:
    acknowledged: list[str] = []

    async def push_on(store: VerbStore, number: int) -> None:
        for n in range(1_000_000):
            job_id = f"{number}/{n}"
            await push(store, job_id)
            acknowledged.append(job_id)

    async with followed(pair, **PATIENT) as store:
        pushing = [asyncio.create_task(push_on(store, number)) for number in range(PUSHERS)]
        await until(lambda: len(acknowledged) > 500)
        await asyncio.sleep(random.uniform(0, 0.05))
        config = await promoted(pair)
        failures = await asyncio.gather(*pushing, return_exceptions=True)
    assert all(isinstance(failure, Unavailable) for failure in failures)
    assert await missing(config, acknowledged) == []


async def test_a_push_that_waits_for_replicas_is_refused_while_the_memory_is_full(
    pair: Pair,
) -> None:
    async with followed(pair) as store:
        ask(pair.master, "CONFIG", "SET", "maxmemory", 1)
        with pytest.raises(Unavailable, match="memory is full"):
            await push(store, "a")


@pytest.mark.parametrize("if_exists", [IfExists.KEEP, IfExists.FAIL])
async def test_a_push_that_finds_its_job_waits_for_what_it_found(
    pair: Pair, if_exists: IfExists
) -> None:
    """A client repeats this after a 503. From Redis 7.2 on, WAIT counts only what its own connection wrote."""
    again = replace(job("again"), if_exists=if_exists)
    async with followed(pair) as store:
        await place(store, "before")
        pair.replica.freeze()
        async with opened(config_of(pair.master, durability="store")) as (careless, _):
            await careless.push(0, [again])
        with pytest.raises(Unavailable):
            await store.push(0, [again])
        pair.replica.thaw()


async def test_an_end_that_finds_nothing_waits_for_what_ended_it(pair: Pair) -> None:
    ending = [Ending("a", None, "")]
    async with followed(pair) as store:
        await place(store, "a")
        pair.replica.freeze()
        async with opened(config_of(pair.master, durability="store")) as (careless, _):
            await careless.delete(0, ending)
        with pytest.raises(Unavailable):
            await store.delete(0, ending)
        pair.replica.thaw()


@pytest.mark.parametrize(("durability", "is_lost"), [("store", True), ("replica", False)])
async def test_a_push_that_no_replica_has_is_lost_and_acknowledged_only_with_the_plain_setting(
    pair: Pair, durability: str, is_lost: bool
) -> None:
    async with Proxy(pair.master.port) as link:
        ask(pair.replica, "REPLICAOF", LOOPBACK, link.port)
        async with followed(pair, durability=durability) as store:
            await place(store, "before")
            acknowledged = ["before"]
            link.half_open()
            for n in range(3):
                with suppress(Unavailable):
                    await push(store, f"late {n}")
                    acknowledged.append(f"late {n}")
            config = await promoted(pair)
    assert (await missing(config, acknowledged) != []) is is_lost


async def test_a_push_without_an_answer_may_be_done_and_the_next_is_not_begun(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with followed(pair) as store:
        pair.replica.freeze()
        with monkeypatch.context() as patient:
            patient.setattr(replication, "LAG_S", LONG_S)
            with pytest.raises(Unavailable):
                await push(store, "in doubt")
        await until(lambda: _lag_s(pair) > replication.LAG_S)
        with pytest.raises(Unavailable):
            await push(store, "not begun")
        views = await store.get(0, ["in doubt", "not begun"])
        assert [view is not None for view in views] == [True, False]
        pair.replica.thaw()
        await until(lambda: _lag_s(pair) == 0)
        await place(store, "again")


def _lag_s(pair: Pair) -> int:
    [fields] = [
        line
        for line in ask(pair.master, "INFO", "replication").splitlines()
        if line.startswith("slave0:")
    ]
    return int(fields.rpartition("lag=")[2].split(",")[0])


async def test_a_call_that_goes_after_one_that_waits_in_vain_has_the_time_to_wait_too(
    pair: Pair, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replication, "LAG_S", LONG_S)
    async with followed(pair, **PATIENT) as store:
        await place(store, "earlier", "first")
        await store.finish(0, [Ending("earlier", None, "")])  # so that the store has the script
        pair.replica.freeze()
        first = asyncio.create_task(store.finish(0, [Ending("first", None, "")]))
        await asyncio.sleep(0.1)
        failures = await asyncio.gather(first, push(store, "second"), return_exceptions=True)
    assert [type(failure) for failure in failures] == [Unavailable, Unavailable]
    assert caplog.text.count("0 of 1 replicas have it") == 2


async def test_what_waits_for_replicas_is_a_setting(pair: Pair) -> None:
    """Each word of it: tests/unit/test_scripts.py."""
    async with followed(pair, redis_replicate="changes") as store:
        await place(store, "first", "second")
        pair.replica.freeze()
        found = set()
        for verb, call in {
            "pop": store.pop(0, [Demand(("topic",), 1)]),
            "finish": store.finish(0, [Ending("first", None, "")]),
            "push": store.push(0, [job("third")]),
            "get": store.get(0, ["first"]),
        }.items():
            try:
                await call
            except Unavailable:
                found.add(verb)
    assert found == {"push", "finish"}


async def test_a_master_without_an_append_only_file_is_refused(pair: Pair) -> None:
    config = config_of(pair.master)
    async with opened(config) as (_, servers):
        await check_durability(servers, config)
        await servers.of("any").config_set("appendonly", "no")
        with pytest.raises(StartupError, match="set `appendonly yes`") as refused:
            await check_durability(servers, config)
        assert refused.value.key == "durability"


async def test_both_promises_are_looked_at_where_both_are_asked_for(pair: Pair) -> None:
    config = config_of(pair.master, durability="replica+fsync")
    async with opened(config) as (store, servers):
        with pytest.raises(StartupError, match=r"replica\+fsync: .* set `appendfsync always`"):
            await check_durability(servers, config)
        await servers.of("any").config_set("appendfsync", "always")
        await check_durability(servers, config)
        await until_followed(pair)
        await place(store, "one")
        pair.replica.freeze()
        with pytest.raises(Unavailable):
            await push(store, "two")


async def test_doubts_come_and_go_with_replicas(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(replication, "LOOK_S", 0.05)
    caplog.set_level(logging.INFO)
    async with followed(pair) as store, connect(config_of(pair.master), None) as servers:
        assert store.durability.replicas is not None
        watching = asyncio.create_task(store.durability.replicas.watch(servers))
        pair.replica.kill()
        await until(lambda: any("0 replicas follow" in warning.en for warning in store.warnings))
        assert not (await store.health()).durable
        pair.replica.start()
        await until(lambda: store.warnings == [])
        assert (await store.health()).durable
        await cancel_all([watching])
    assert "survive a failover again" in caplog.messages[-1]


async def warnings_of(servers: Servers, config: Config) -> list[str]:
    return [warning.en for warning in await replica_warnings(servers, config)]


async def test_more_replicas_than_must_have_it_are_a_warning(
    pair: Pair, processes: Processes
) -> None:
    start = processes.valkey if pair.master.name == "valkey" else processes.redis
    second = start(*SAFE, "--replicaof", f"{LOOPBACK} {pair.master.port}")
    try:
        await until(lambda: "slave1" in ask(pair.master, "INFO", "replication"))
        await until(lambda: ask(second, "ROLE")[3:4] == ["connected"])
        for least, doubted in ((1, True), (2, False)):
            config = config_of(pair.master, redis_min_replicas=least)
            async with opened(config) as (_, servers):
                warnings = await warnings_of(servers, config)
                assert any("redis.min_replicas = 2" in each for each in warnings) is doubted
    finally:
        second.close()


async def test_replicas_that_keep_less_than_is_asked_for_are_warnings(pair: Pair) -> None:
    config = config_of(pair.master, durability="replica+fsync")
    ask(pair.master, "CONFIG", "SET", "appendfsync", "always")
    await until_followed(pair)
    name = f"the replica {pair.replica.address}"
    async with connect(config, None) as servers:
        for appendonly, appendfsync, says in (
            ("yes", "everysec", f"{name} answers before a job is on its disk; set `appendfsync al"),
            ("no", "always", f"{name} has no append-only file"),
        ):
            ask(pair.replica, "CONFIG", "SET", "appendonly", appendonly)
            ask(pair.replica, "CONFIG", "SET", "appendfsync", appendfsync)
            [warning] = await warnings_of(servers, config)
            assert warning.startswith(says)
        assert await warnings_of(servers, config_of(pair.master)) == [warning]
        ask(pair.replica, "CONFIG", "SET", "appendonly", "yes")
        assert await warnings_of(servers, config) == []
        ask(pair.replica, "ACL", "SETUSER", "default", "-config")
        [warning] = await warnings_of(servers, config)
        assert warning.startswith(f"{name} refuses CONFIG GET")
        ask(pair.replica, "ACL", "SETUSER", "default", "resetpass", ">secret")
        [warning] = await warnings_of(servers, config)
        assert warning.startswith(f"{name} cannot be asked how durable it is")


async def test_the_embedded_store_is_refused(redis_server: StoreServer) -> None:
    async with opened(config_of(redis_server)) as (_, servers):
        with pytest.raises(StartupError, match="the embedded store has no replicas"):
            await check_durability(servers, Config(durability="replica"))


async def test_sentinels_and_clusters_tell_how_many_replicas_there_are_and_these_can_be_asked(
    watched_store: WatchedStore, cluster: StoreCluster
) -> None:
    of_sentinels = tuple(Address(each.host, each.port) for each in watched_store.sentinels)
    of_cluster = tuple(Address(each.host, each.port) for each in cluster.nodes[:1])
    for there, masters in (
        (Config(redis_sentinel=of_sentinels, redis_master_name=MASTER_NAME), 1),
        (Config(redis_cluster=of_cluster), cluster.shards),
    ):
        config = replace(there, durability="replica")
        async with connect(config, None) as servers:
            found = [await servers.replicas_of(redis) for redis in servers.clients().values()]
            assert found == [1] * masters
            assert await warnings_of(servers, config) == []


async def test_a_replica_that_died_still_counts_as_one_that_can_take_over(
    processes: Processes,
) -> None:
    watched = WatchedStore(processes, replicas=2, down_after_ms=UNHURRIED_MS)
    try:
        watched.replicas[0].kill()
        sentinels = tuple(Address(each.host, each.port) for each in watched.sentinels)
        named: dict[str, Any] = {"redis_sentinel": sentinels, "redis_master_name": MASTER_NAME}
        config = Config(durability="replica", **named)
        async with connect(config, None) as servers:
            warnings = await warnings_of(servers, config)
        assert any("redis.min_replicas = 2" in each for each in warnings)
    finally:
        watched.close()
