"""Stores of many servers: calls go where the bucket is, and trouble with one server affects only that one."""

import asyncio
import gc
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError, StoreUnwell
from delayqueue.config.values import Address
from delayqueue.errors import Unavailable
from delayqueue.store.announcements import listen
from delayqueue.store.buckets import Buckets, Layout
from delayqueue.store.connect import connect
from delayqueue.store.health import AILMENTS_BY_CLASS, durability_warnings, look_at
from delayqueue.store.layout import check_writable, claim_layout
from delayqueue.store.servers import Cluster, Servers, Span
from delayqueue.tasks import cancel_all
from tests.certificates import make
from tests.clusters import MASTER_NAME, SHARDS, ClusterNode, StoreCluster, WatchedStore, ask
from tests.processes import LOOPBACK, Processes, StoreServer, free_port
from tests.store.bucket import VerbStore, job
from tests.waiting import until, until_async

BUCKETS: Final = 12
FOR_A_NEW_MASTER_S: Final = 60


def of_cluster(cluster: StoreCluster, **settings: Any) -> Config:
    addresses = tuple(Address(LOOPBACK, node.port) for node in cluster.nodes[:SHARDS])
    return Config(redis_cluster=addresses, bucket_size=BUCKETS, **settings)


def of_sentinels(watched: WatchedStore, **settings: Any) -> Config:
    addresses = tuple(Address(LOOPBACK, sentinel.port) for sentinel in watched.sentinels)
    named = {"redis_master_name": MASTER_NAME} | settings
    return Config(redis_sentinel=addresses, **named)


@asynccontextmanager
async def opened(config: Config) -> AsyncIterator[tuple[VerbStore, Servers]]:
    """A store on these servers."""
    async with connect(config, None) as servers:
        layout = Layout(config.bucket_size)
        yield VerbStore(servers, Buckets(config.bucket_name, config.queue_name, layout)), servers


@asynccontextmanager
async def followed(config: Config) -> AsyncIterator[tuple[VerbStore, Servers]]:
    """A store on these servers that follows their topology, as the server does."""
    async with opened(config) as (store, servers):
        watching = asyncio.create_task(servers.watch())
        yield store, servers
        await cancel_all([watching])


@pytest.fixture
def mortal_cluster(processes: Processes) -> Iterator[StoreCluster]:
    """A Cluster that tests may break."""
    cluster = StoreCluster(processes)
    yield cluster
    cluster.close()


async def push_to(store: VerbStore, bucket: int, **options: Any) -> None:
    [code] = (await store.push(bucket, [job(id_of(store, bucket), **options)])).codes
    assert code == 0


def id_of(store: VerbStore, bucket: int) -> str:
    """An id that belongs to the bucket."""
    return next(f"job-{n}" for n in range(1000) if store.buckets.of(f"job-{n}") == bucket)


async def test_buckets_live_on_all_masters(cluster: StoreCluster) -> None:
    config = of_cluster(cluster, bucket_name="spread_%d")
    async with opened(config) as (store, servers):
        for bucket in range(BUCKETS):
            await push_to(store, bucket)
        ports = {address.port for address in servers.clients()}
        assert ports == {node.port for node in cluster.nodes[:SHARDS]}
        tags = [keys.tag for keys in store.buckets.keys]
        assert len(servers.groups(tags)) == SHARDS
        for redis, tags_here in servers.groups(tags).items():
            keys: Any = await redis.keys("{spread_*:job")
            assert {key.decode() for key in keys} == {f"{tag}:job" for tag in tags_here}


@pytest.mark.parametrize(
    ("database", "says"),
    [
        (1, "SELECT is not allowed in cluster mode; name the servers of that Cluster in redis.clu"),
        (0, "it is a server of a Cluster: name its servers in redis.cluster"),
    ],
)
async def test_one_server_of_a_cluster_is_no_store_and_the_way_out_is_said(
    cluster: StoreCluster, database: int, says: str
) -> None:
    holder = cluster.holder("{dq_bucket_1}")
    other = next(node for node in cluster.nodes[:SHARDS] if node is not holder)
    config = Config(redis_host=Address(LOOPBACK, other.port), redis_db=database)

    async def start() -> None:
        async with connect(config, None) as servers:
            store = VerbStore(servers, Buckets(config.bucket_name, config.queue_name))
            with pytest.raises(Unavailable, match=says):
                await store.tick(0)
            await claim_layout(servers, config)

    with pytest.raises(StartupError, match=says) as refused:
        await start()
    assert not isinstance(refused.value, StoreUnwell)


async def test_a_call_follows_a_bucket_that_has_moved(mortal_cluster: StoreCluster) -> None:
    config = of_cluster(mortal_cluster)
    source = mortal_cluster.holder("{dq_bucket_1}")
    target = next(node for node in mortal_cluster.nodes[:SHARDS] if node is not source)
    async with opened(config) as (store, servers):
        await push_to(store, 0)
        slot = ask(source, "CLUSTER", "KEYSLOT", "{dq_bucket_1}")
        ask(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", source.node_id)
        ask(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", target.node_id)
        # half of the keys here, half there: nothing happens to them
        ask(source, "MIGRATE", LOOPBACK, target.port, "{dq_bucket_1}:job", 0, 1000)
        for _ in range(3):
            with pytest.raises(Unavailable):
                await store.tick(0)
        await store.tick(1)
        for key in ask(source, "CLUSTER", "GETKEYSINSLOT", slot, 100):
            ask(source, "MIGRATE", LOOPBACK, target.port, key, 0, 1000)
        for node in (target, source):
            ask(node, "CLUSTER", "SETSLOT", slot, "NODE", target.node_id)
        [view] = await store.get(0, [id_of(store, 0)])
        assert view is not None
        await until(lambda: mortal_cluster.holder("{dq_bucket_1}") is target)
        await servers.refresh()
        place = Address(LOOPBACK, target.port)
        assert servers.of("{dq_bucket_1}") is servers.clients()[place]


async def test_a_frozen_master_delays_its_own_buckets_only(mortal_cluster: StoreCluster) -> None:
    config = of_cluster(mortal_cluster, redis_read_timeout_ms=5000, redis_write_timeout_ms=5000)
    async with followed(config) as (store, _):
        frozen = mortal_cluster.holder("{dq_bucket_1}")
        others = [
            bucket
            for bucket, keys in enumerate(store.buckets.keys)
            if mortal_cluster.holder(keys.tag) is not frozen
        ]
        frozen.freeze()
        stuck = asyncio.create_task(store.tick(0))
        await asyncio.gather(*(store.tick(bucket) for bucket in others * 5))
        assert not stuck.done(), "calls to the others waited"
        with pytest.raises(Unavailable):
            await stuck
        await until_async(lambda: works(store, 0), within_s=FOR_A_NEW_MASTER_S)


async def test_after_a_timeout_a_call_goes_to_the_master_that_has_taken_the_place(
    mortal_cluster: StoreCluster,
) -> None:
    """Nothing else checks: the call itself does, and does not waste time on the frozen one first."""
    config = of_cluster(mortal_cluster, redis_read_timeout_ms=5000, redis_write_timeout_ms=5000)
    async with opened(config) as (store, servers):
        await store.tick(0)
        frozen = mortal_cluster.holder("{dq_bucket_1}")
        slot = ask(frozen, "CLUSTER", "KEYSLOT", "{dq_bucket_1}")
        frozen.freeze()
        alive = next(node for node in mortal_cluster.nodes if node is not frozen)
        await until(lambda: master_port(alive, slot) != frozen.port, within_s=FOR_A_NEW_MASTER_S)
        assert not await works(store, 0)
        began = time.monotonic()
        assert await works(store, 0)
        assert time.monotonic() - began < 4.5, "it was not asked for another timeout"
        assert Address(LOOPBACK, frozen.port) not in servers.clients()


async def test_a_call_that_nobody_wants_any_more_says_nothing_of_its_server(
    cluster: StoreCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise clients that hang up would cause the topology to be read, and other calls would wait."""
    async with opened(of_cluster(cluster)) as (store, servers):
        find, sent, reads = Cluster.find, asyncio.Event(), 0

        async def counted(topology: Cluster) -> list[Span]:
            nonlocal reads
            reads += 1
            return await find(topology)

        async def unanswered(_: Redis) -> None:
            sent.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(Cluster, "find", counted)
        call = asyncio.create_task(servers.call(store.buckets.keys[0].tag, unanswered))
        await sent.wait()
        await cancel_all([call])
        assert await works(store, 0)
        assert reads == 0


def master_port(node: ClusterNode, slot: int) -> int:
    """The port of the master that holds the slot, according to this server."""
    for first, last, (_, port, *_), *_ in ask(node, "CLUSTER", "SLOTS"):
        if first <= slot <= last:
            return int(port)
    return 0


def no_client(address: Address) -> Redis:
    raise AssertionError(address)


async def test_a_server_that_fails_as_another_one_answers_is_no_news(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alive, dead = (Address(LOOPBACK, port) for port in (1, 2))
    both_asked, asked = asyncio.Event(), set[Address]()

    async def answer(_: Cluster, address: Address) -> list[Span]:
        asked.add(address)
        if len(asked) == 2:
            both_asked.set()
        await both_asked.wait()
        if address == dead:
            raise RedisConnectionError("nobody is there")
        return []

    monkeypatch.setattr(Cluster, "_ask", answer)
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    for _ in range(9):  # in either order
        both_asked.clear()
        asked.clear()
        assert await Cluster((alive, dead), no_client).find() == []
        gc.collect()
    assert told == []


ASKED: Final = Address("10.0.0.1", 7000)


@pytest.mark.parametrize(
    ("server", "host"),
    [
        ([b"ten.example", 7000, b"id", [b"ip", b"10.0.0.2"]], "ten.example"),
        ([b"10.0.0.2", 7000, b"id"], "10.0.0.2"),
        ([None, 7000, b"id", [b"ip", b"10.0.0.2"]], "10.0.0.1"),
        ([b"", 7000, b"id"], "10.0.0.1"),
        ([b"?", 7000, b"id", [b"ip", b"10.0.0.2"]], "10.0.0.2"),
        ([b"?", 7000, b"id", [b"ip", b""]], "10.0.0.1"),
    ],
)
async def test_a_server_is_at_the_address_that_its_cluster_prefers(
    monkeypatch: pytest.MonkeyPatch, server: list[Any], host: str
) -> None:
    """As `cluster-preferred-endpoint-type` says; one that announces no name is reached by its address."""

    async def slots(_: Redis, *words: str) -> object:
        return [[0, 16383, server]] if words[1] == "SLOTS" else b"cluster_state:ok"

    monkeypatch.setattr(Redis, "execute_command", slots)
    found = await Cluster((ASKED,), lambda place: Redis(host=place.host, port=place.port)).find()
    assert found == [Span(0, 16383, Address(host, 7000))]


async def test_a_server_that_is_cut_off_from_its_cluster_is_believed_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cut_off, other = (Address(LOOPBACK, port) for port in (1, 2))

    async def answer(redis: Redis, *words: str) -> object:
        port = redis.connection_pool.connection_kwargs["port"]
        if words[1] == "SLOTS":
            return [[0, 16383, [b"", port, b"id"]]]
        return b"cluster_state:fail" if port == cut_off.port else b"cluster_state:ok"

    monkeypatch.setattr(Redis, "execute_command", answer)

    def client(place: Address) -> Redis:
        return Redis(host=place.host, port=place.port)

    for _ in range(9):  # they are asked in any order
        assert await Cluster((cut_off, other), client).find() == [Span(0, 16383, other)]
    assert await Cluster((cut_off,), client).find() == [Span(0, 16383, cut_off)]


async def test_the_topology_is_not_asked_for_behind_servers_that_are_silent(
    cluster: StoreCluster,
) -> None:
    with ExitStack() as stack:
        silent = [stack.enter_context(socket.create_server((LOOPBACK, 0))) for _ in range(4)]
        ports = [server.getsockname()[1] for server in silent] + [cluster.nodes[0].port]
        addresses = tuple(Address(LOOPBACK, port) for port in ports)
        for _ in range(3):  # they are asked in any order
            began = time.monotonic()
            async with connect(Config(redis_cluster=addresses), None) as servers:
                assert len(servers.clients()) == SHARDS
            assert time.monotonic() - began < 4.5, "less than one that is silent is waited for"


async def works(store: VerbStore, bucket: int) -> bool:
    try:
        await store.tick(bucket)
    except Unavailable:
        return False
    return True


async def test_a_look_at_all_servers_says_which_one_is_silent(mortal_cluster: StoreCluster) -> None:
    async with opened(of_cluster(mortal_cluster)) as (store, servers):
        frozen = mortal_cluster.holder("{dq_bucket_1}")
        mine = [
            number
            for number, keys in enumerate(store.buckets.keys, 1)
            if mortal_cluster.holder(keys.tag) is frozen
        ]
        frozen.freeze()
        looks = await look_at(servers, store.buckets.tags)
        assert len(looks) == SHARDS
        assert [(look.buckets, look.ailment) for look in looks if look.ailment] == [
            (mine, AILMENTS_BY_CLASS[RedisTimeoutError])
        ]


async def test_a_server_starts_while_a_master_is_away(mortal_cluster: StoreCluster) -> None:
    lost = mortal_cluster.holder("{dq_bucket_1}")
    mortal_cluster.nodes[mortal_cluster.nodes.index(lost) + SHARDS].kill()
    lost.kill()
    config = of_cluster(mortal_cluster)
    async with opened(config) as (store, _):
        assert [await works(store, bucket) for bucket in range(BUCKETS)].count(False) > 0
        assert [await works(store, bucket) for bucket in range(BUCKETS)].count(True) > 0


async def test_news_of_ready_jobs_come_from_every_master(cluster: StoreCluster) -> None:
    config = of_cluster(cluster, bucket_name="news_%d")
    heard: list[tuple[int, str, int]] = []
    subscribed: list[int] = []

    async with opened(config) as (listener, _), opened(config) as (responder, _):
        listening = asyncio.create_task(
            listen(listener, lambda *news: heard.append(news), lambda _: None, subscribed.append)
        )
        await until(lambda: len(subscribed) == BUCKETS)
        for bucket in range(BUCKETS):
            await push_to(responder, bucket, topic="t")
        await until(lambda: len(heard) == BUCKETS)
        await cancel_all([listening])
    assert sorted(heard) == [(bucket, "t", 1) for bucket in range(BUCKETS)]


async def test_news_go_on_after_a_failover(mortal_cluster: StoreCluster) -> None:
    heard: list[int] = []
    config = of_cluster(mortal_cluster)
    async with followed(config) as (listener, _), followed(config) as (responder, _):
        listening = asyncio.create_task(
            listen(
                listener, lambda bucket, *_: heard.append(bucket), lambda _: None, lambda _: None
            )
        )
        mortal_cluster.holder("{dq_bucket_1}").kill()
        await until_async(lambda: works(responder, 0), within_s=FOR_A_NEW_MASTER_S)

        async def said_and_heard() -> bool:
            await push_to(responder, 0)
            await asyncio.sleep(0.05)
            return 0 in heard

        await until_async(said_and_heard)
        await cancel_all([listening])


async def test_a_look_follows_buckets_that_have_another_server(cluster: StoreCluster) -> None:
    """As after a failover, before the topology is read again: nothing is wrong."""
    async with opened(of_cluster(cluster)) as (store, servers):
        places = [span.address for span in servers._spans]
        moved = [*places[1:], places[0]]
        servers._spans = [
            span._replace(address=place) for span, place in zip(servers._spans, moved, strict=True)
        ]
        looks = await look_at(servers, store.buckets.tags)
        assert [look.ailment for look in looks] == [None] * len(looks)


async def test_warnings_name_the_server(cluster: StoreCluster) -> None:
    node = cluster.nodes[0]
    async with opened(of_cluster(cluster)) as (_, servers):
        assert await durability_warnings(servers) == []
        ask(node, "CONFIG", "SET", "appendonly", "no", "cluster-require-full-coverage", "yes")
        warnings = await durability_warnings(servers)
        ask(node, "CONFIG", "SET", "appendonly", "yes", "cluster-require-full-coverage", "no")
    assert warnings == [
        f"{node.address}: {warning}"
        for warning in (
            "the store can lose jobs when it stops: set `appendonly yes` in its config",
            "one lost server stops the whole Cluster: set `cluster-require-full-coverage no` in its config",
        )
    ]


async def test_a_failover_by_the_sentinels_is_followed(processes: Processes) -> None:
    watched = WatchedStore(processes)
    async with followed(of_sentinels(watched)) as (store, _):
        await push_to(store, 0)
        [replica] = watched.replicas
        await until(lambda: ask(replica, "ROLE")[-1] == ask(watched.master, "ROLE")[1])
        watched.master.kill()
        await until_async(lambda: works(store, 0), within_s=FOR_A_NEW_MASTER_S)
        assert await store.get(0, [id_of(store, 0)]) != [None]
    watched.close()


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        (
            {"redis_master_name": "nobody"},
            "No such master with that name; correct redis.master_name",
        ),
        ({"redis_sentinel_password": "wrong"}, "correct redis.password or redis.sentinel_password"),
    ],
)
async def test_what_is_wrong_with_sentinels_is_named(
    watched_store: WatchedStore, setting: dict[str, Any], says: str
) -> None:
    config = of_sentinels(watched_store, **setting)
    silent = Address(LOOPBACK, free_port())  # which says less than those that answer
    config = replace(config, redis_sentinel=(silent, *config.redis_sentinel))
    with pytest.raises(StartupError) as refused:
        async with connect(config, None):
            pass
    assert str(refused.value).startswith("redis.sentinel = 127.0.0.1:")
    assert says in str(refused.value)


async def test_a_lone_server_is_no_cluster(redis_server: StoreServer) -> None:
    config = Config(redis_cluster=(Address(LOOPBACK, redis_server.port),))
    with pytest.raises(StartupError) as refused:
        async with connect(config, None):
            pass
    assert "cluster support disabled; name that server in redis.host" in str(refused.value)


async def test_one_of_the_named_servers_is_enough(cluster: StoreCluster) -> None:
    nobody, somebody = Address(LOOPBACK, free_port()), Address(LOOPBACK, cluster.nodes[0].port)
    async with connect(Config(redis_cluster=(nobody, somebody)), None) as servers:
        assert len(servers.clients()) == SHARDS
    with pytest.raises(StartupError, match=f"redis.cluster = {nobody}: Error 111"):
        async with connect(Config(redis_cluster=(nobody,)), None):
            pass


@pytest.mark.parametrize("kind", ["redis", "valkey"])
async def test_a_user_that_may_not_publish_is_refused_with_the_way_out(
    processes: Processes, kind: str
) -> None:
    """As Redis 7 makes users, unless channels are named: a push was stored, and answered with 503."""
    store: StoreServer = getattr(processes, kind)()
    ask(store, "ACL", "SETUSER", "queue", "on", ">secret", "~*", "resetchannels", "+@all")
    place = Address(LOOPBACK, store.port)
    config = Config(redis_host=place, redis_user="queue", redis_password="secret")
    async with connect(config, None) as servers:
        for refuses in (claim_layout, check_writable):
            with pytest.raises(StartupError, match="all keys and channels that begin like") as told:
                await refuses(servers, config)
            assert not isinstance(told.value, StoreUnwell)
        ask(store, "ACL", "SETUSER", "queue", "&{dq_bucket_*")
        await claim_layout(servers, config)
        await check_writable(servers, config)


async def test_tls_and_an_acl_user_lead_into_a_cluster(
    processes: Processes, tmp_path: Path
) -> None:
    own, stranger = make(tmp_path, "redis"), make(tmp_path, "stranger")
    store = processes.redis(
        *("--tls-port", str(port := free_port()), "--tls-auth-clients", "yes"),
        *("--tls-cert-file", str(own.cert), "--tls-key-file", str(own.key)),
        *("--tls-ca-cert-file", str(own.cert)),
    )
    ask(
        store, "ACL", "SETUSER", "queue", "on", ">secret", "~{dq_bucket_*", "&{dq_bucket_*", "+@all"
    )
    named: dict[str, Any] = {
        "redis_host": Address(LOOPBACK, port),
        "redis_user": "queue",
        "redis_password": "secret",
        "redis_tls": True,
        "redis_tls_ca": own.cert,
        "redis_tls_cert": own.cert,
        "redis_tls_key": own.key,
    }
    async with opened(Config(**named)) as (queue, _):
        await push_to(queue, 0)
    url = f"rediss://queue:secret@{LOOPBACK}:{port}/1"
    files = {name: value for name, value in named.items() if name.startswith("redis_tls_")}
    async with opened(Config(redis_url=url, **files)) as (queue, _):
        assert await queue.get(0, [id_of(queue, 0)]) != [None]
    for wrong, says in (
        ({"redis_tls_ca": stranger.cert}, "CERTIFICATE_VERIFY_FAILED"),
        ({"redis_tls_ca": tmp_path / "none"}, "No such file"),
        ({"redis_password": "wrong"}, "correct redis.password"),
    ):
        with pytest.raises(StartupError, match=says):
            async with connect(Config(**named | wrong), None):
                pass
    async with connect(Config(**named, redis_connect_timeout_ms=3000), None):
        store.freeze()  # so TLS has no end, which is no failure of ours
    store.close()
