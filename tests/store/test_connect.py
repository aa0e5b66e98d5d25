"""Connecting to a real store: messages about one that is unreachable or may lose jobs, and what a freeze costs."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop
from redis.asyncio import Connection, Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ReadOnlyError
from redis.exceptions import TimeoutError as RedisTimeoutError

from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError, StoreUnwell
from delayqueue.config.values import Address
from delayqueue.errors import Unavailable
from delayqueue.net.hangup import hang_up
from delayqueue.store.buckets import Buckets
from delayqueue.store.connect import connect
from delayqueue.store.connection import Link
from delayqueue.store.health import alarms, durability_warnings, health, weaknesses
from delayqueue.store.server import Server
from delayqueue.store.servers import Servers
from delayqueue.store.store import Store
from tests.certificates import Pair, make
from tests.processes import LOOPBACK, Processes, StoreServer, free_port
from tests.waiting import until_async

SECRET = "s3cret"
MOST_S = 15.0  # on a busy machine; what is not limited takes longer
SAFE = ("--appendonly", "yes", "--maxmemory-policy", "noeviction")


@pytest.fixture(scope="module")
def guarded(processes: Processes) -> Iterator[StoreServer]:
    """A store that requires a password; on TCP and on a unix socket."""
    store = processes.redis("--requirepass", SECRET, "--unixsocket", "sock")
    yield store
    store.close()


def at(store: StoreServer, **options: object) -> Config:
    given: dict[str, object] = {"redis_host": Address(LOOPBACK, store.port), "redis_db": 1}
    return Config(**given | options)  # type: ignore[arg-type]  # checked by the tests that use it


@asynccontextmanager
async def opened(config: Config) -> AsyncIterator[Redis]:
    """A client of the one server that the config names."""
    async with connect(config, None) as servers:
        yield servers.of("any key")


def store_over(servers: Servers) -> Store:
    return Store(servers, Buckets(Config().bucket_name, Config().queue_name))


async def refusal(config: Config) -> str:
    """The one line about an unusable store."""
    with pytest.raises(StartupError) as refused:
        async with connect(config, None):
            pass
    message = str(refused.value)
    assert "\n" not in message
    assert SECRET not in message
    return message


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
@pytest.mark.parametrize("is_replica", [False, True])
def test_a_connection_that_the_store_closes_while_it_logs_in_is_an_error_of_the_store(
    run: Callable[[Coroutine[Any, Any, None]], None], is_replica: bool
) -> None:
    """uvloop raises RuntimeError, which would end the server."""

    async def lose_it() -> None:
        async with greeter() as (port, writers):
            address = Address(LOOPBACK, port)
            async with connect(Config(redis_host=address), None, waits=True) as servers:
                redis = servers.ask(address) if is_replica else servers.of("any key")
                connection: Connection = redis.connection_pool.make_connection()  # type: ignore[no-untyped-call]
                await connection.connect()  # type: ignore[no-untyped-call]
                hang_up(writers[0].transport)
                await asyncio.sleep(0.05)
                with pytest.raises(RedisConnectionError):
                    await connection.send_command("PING")

    run(lose_it())


@asynccontextmanager
async def greeter(
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[tuple[int, list[asyncio.StreamWriter]]]:
    """The port of a server that lets everybody in and answers a PING, and its connections."""
    writers = list[asyncio.StreamWriter]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with suppress(ConnectionError):
            while line := await reader.readline():
                word = line.strip()
                if word in {b"CLIENT", b"SELECT", b"PING", b"ECHO"}:
                    writer.write(b"+PONG\r\n" if word == b"PING" else b"+OK\r\n")
        writer.close()

    async with await asyncio.start_server(serve, LOOPBACK, 0, ssl=tls) as listener:
        yield listener.sockets[0].getsockname()[1], writers
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0.01)


async def test_the_right_password_opens_the_right_database(guarded: StoreServer) -> None:
    async with opened(at(guarded, redis_password=SECRET, redis_db=7)) as redis:
        await redis.set("key", "é")
        assert await redis.get("key") == "é".encode()
    url = f"redis://:{SECRET}@{guarded.address}/7"
    async with opened(Config(redis_url=url)) as redis:
        assert await redis.get("key") == "é".encode()
    url = f"unix://:{SECRET}@{guarded.home}/sock?db=7"
    async with opened(Config(redis_url=url)) as redis:
        assert await redis.get("key") == "é".encode()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "Authentication required; correct redis.password"),
        (
            {"redis_password": "wrong"},
            (
                "invalid username-password pair or user is disabled; "
                "correct redis.password, in quotes if it contains ; or #"
            ),
        ),
        (
            {"redis_password": SECRET, "redis_db": 99_999},
            (
                "DB index is out of range; lower the number in redis.db, "
                "or raise `databases` in the store's config"
            ),
        ),
    ],
    ids=["no password", "wrong password", "no such database"],
)
async def test_a_refusal_names_the_setting(
    guarded: StoreServer, options: dict[str, object], says: str
) -> None:
    assert await refusal(at(guarded, **options)) == f"redis.host = {guarded.address}: {says}"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("redis://:wrong@HERE/0", "redis.url = redis://HERE/0: invalid username-password pair"),
        ("redis://u:s3cret@HERE/0", "redis.url = redis://HERE/0: invalid username-password pair"),
        ("redis://:s3cret@HERE/99999", "redis.url = redis://HERE/99999: DB index is out of range"),
        ("redis://:s3cret@HERE/0?db=x", "redis.url = redis://HERE/0: Invalid value for 'db'"),
        ("redis://:s3cret@HERE/0?no=1", "redis.url = redis://HERE/0: unknown parameter"),
        ("unix:///no/sock", "redis.url = unix:///no/sock: Error 2 connecting to /no/sock"),
    ],
    ids=["password", "user", "database", "value", "parameter", "socket"],
)
async def test_a_url_that_does_not_lead_in_is_shown_without_its_secrets(
    guarded: StoreServer, url: str, says: str
) -> None:
    message = await refusal(Config(redis_url=url.replace("HERE", guarded.address)))
    assert message.startswith(says.replace("HERE", guarded.address))


async def test_a_port_that_nobody_listens_on_is_named() -> None:
    address = Address(LOOPBACK, free_port())
    message = await refusal(Config(redis_host=address))
    assert message.startswith(f"redis.host = {address}: Error 111 connecting to {address}.")
    assert message.endswith(
        "; start Redis or Valkey there, correct the address, or use the embedded store: redis.host = embedded"
    )


async def test_a_store_without_room_for_us_is_named(processes: Processes) -> None:
    store = processes.redis("--maxclients", "1")
    config = Config(redis_host=Address(LOOPBACK, store.port))
    async with Redis(host=LOOPBACK, port=store.port) as other:
        await other.ping()
        with pytest.raises(StoreUnwell, match="clients reached; raise `maxclients`") as refused:
            async with connect(config, None):
                pass
    assert refused.value.text.en.startswith("it has no room for more clients")


async def test_a_host_that_does_not_exist_is_named() -> None:
    message = await refusal(Config(redis_host=Address("no.invalid", 6379)))
    assert message.startswith("redis.host = no.invalid:6379: Error ")


async def test_a_server_of_another_kind_is_named() -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(greet, LOOPBACK, 0) as server:
        address = Address(LOOPBACK, server.sockets[0].getsockname()[1])
        message = await refusal(Config(redis_host=address))
    assert message.startswith(f"redis.host = {address}: ")


@pytest.mark.parametrize(
    ("read_ms", "write_ms", "limit_s"),
    [
        (180_000, 3000, 5.0),  # the original's default counts as 5 s
        (300, 0, 5.0),  # 0 counts as 5 s
        (200, 300, 0.3),  # the longer of the two
    ],
)
async def test_the_limit_of_a_call_is_the_longer_one_up_to_five_seconds(
    redis_server: StoreServer, read_ms: int, write_ms: int, limit_s: float
) -> None:
    config = at(redis_server, redis_read_timeout_ms=read_ms, redis_write_timeout_ms=write_ms)
    async with opened(config) as redis:
        assert redis.connection_pool.connection_kwargs["socket_timeout"] == limit_s


@pytest.mark.parametrize("turns", range(1, 6))
async def test_a_connection_that_is_being_made_is_closed_with_the_others(
    redis_server: StoreServer, turns: int
) -> None:
    async with Redis(host=LOOPBACK, port=redis_server.port) as redis:
        before = await redis.client_list()
        async with connect(at(redis_server), None, waits=True) as servers:
            call = asyncio.ensure_future(store_over(servers).bucket(0).tick())
            for _ in range(turns):
                await asyncio.sleep(0)
            call.cancel()

        async def are_as_before() -> bool:
            return len(await redis.client_list()) == len(before)

        await until_async(are_as_before)


class TestFrozen:
    """A store that accepts connections and answers nothing."""

    @pytest.fixture
    def store(self, processes: Processes) -> Iterator[StoreServer]:
        frozen = processes.redis()
        yield frozen
        frozen.close()

    @pytest.mark.parametrize(
        ("settings", "least_s"),
        [
            ({}, 1.45),
            ({"durability": "replica", "redis_replica_timeout_ms": 1000}, 2.45),
        ],
        ids=["plain", "it may wait for replicas too"],
    )
    async def test_it_costs_a_verb_the_same(
        self, store: StoreServer, settings: dict[str, object], least_s: float
    ) -> None:
        async with connect(at(store), None) as servers:
            await store_over(servers).bucket(0).tick()  # loads the library, which may take longer
        config = at(store, redis_read_timeout_ms=1000, redis_write_timeout_ms=1500, **settings)
        async with connect(config, None) as servers:
            bucket = store_over(servers).bucket(0)
            await bucket.tick()
            store.freeze()
            began = time.monotonic()
            with pytest.raises(Unavailable):
                await bucket.tick()
            assert least_s <= time.monotonic() - began <= MOST_S

    async def test_a_call_is_never_sent_twice(self, store: StoreServer) -> None:
        config = at(store, redis_read_timeout_ms=2000, redis_write_timeout_ms=2000)
        async with opened(config) as redis:
            count = redis.register_script("return redis.call('INCR', 'calls')")
            await count()
            store.freeze()
            with pytest.raises(RedisTimeoutError):
                await count()
            store.thaw()
            # commands to the frozen store ran once when it thawed
            assert await count() == 3

    async def test_it_is_named_at_the_start(self, store: StoreServer) -> None:
        store.freeze()
        config = at(store, redis_read_timeout_ms=300, redis_write_timeout_ms=300)
        assert (await refusal(config)).startswith(
            f"redis.host = {store.address}: Timeout reading from {store.address}; it accepts connections"
        )


@pytest.mark.parametrize(
    ("settings", "half"), [({"redis_max_active": 4}, 2), ({"redis_max_idle": 6}, 3)]
)
async def test_questions_beyond_their_half_of_the_connections_wait_instead_of_failing(
    redis_server: StoreServer, settings: dict[str, object], half: int
) -> None:
    config = at(redis_server, redis_db=redis_server.new_database(), **settings)
    async with opened(config) as redis:
        await asyncio.gather(*(redis.echo("x") for _ in range(100)))
        assert await connections_of(redis) == half


@asynccontextmanager
async def encrypted(
    own: Pair,
) -> AsyncIterator[tuple[ssl.SSLContext, Server, list[asyncio.StreamWriter]]]:
    """The TLS of a greeter with this certificate, the store that we take it for, and its connections."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(own.cert, own.key)
    async with greeter(tls) as (port, writers):
        config = Config(redis_host=Address(LOOPBACK, port), redis_tls=True, redis_tls_ca=own.cert)
        async with connect(config, None) as servers:
            yield tls, await servers.reach("any key"), writers


async def test_idle_connections_are_closed_at_once(tmp_path: Path) -> None:
    """A silent store does not end TLS; redis-py waits for that, and then closes those opened meanwhile."""
    own = make(tmp_path, "store")
    async with encrypted(own) as (_, server, writers):
        for writer in writers:
            writer.transport.pause_reading()  # type: ignore[attr-defined]
        began_s = time.monotonic()
        await server.drop_idle()
        assert time.monotonic() - began_s < MOST_S
        await server.redis.ping()
        assert len(writers) == 2, "it was asked on another connection"


async def test_a_question_beside_takes_no_connection_that_is_being_closed(tmp_path: Path) -> None:
    async with encrypted(make(tmp_path, "store")) as (_, server, writers):
        for turns in range(10):
            dropping = asyncio.create_task(server.drop_idle())
            for _ in range(turns):
                await asyncio.sleep(0)
            await server.redis.ping()
            await dropping
        assert len(writers) > 1


async def test_a_connection_that_is_made_anew_reads_renewed_certificates(tmp_path: Path) -> None:
    own, renewed = make(tmp_path, "store"), make(tmp_path, "renewed")
    async with encrypted(own) as (tls, server, writers):
        tls.load_cert_chain(renewed.cert, renewed.key)
        own.cert.write_bytes(renewed.cert.read_bytes())
        await server.drop_idle()
        await server.redis.ping()
        assert len(writers) == 2


async def test_connections_share_what_was_read_of_certificates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To read the system's authorities again for each connection would hold up requests."""
    async with encrypted(make(tmp_path, "store")) as (_, server, writers):
        monkeypatch.setattr(ssl, "create_default_context", None)
        await server.drop_idle()
        await server.redis.ping()
        link = Link()
        await link.connect(server.redis.connection_pool)
        link.close()
        assert len(writers) == 3


async def connections_of(redis: Redis) -> int:
    """How many connections the client's store has to it in the client's database."""
    db = await redis.client_info()
    return sum(client["db"] == str(db["db"]) for client in await redis.client_list())


@pytest.mark.parametrize("kind", ["redis", "valkey"])
async def test_a_safe_store_is_not_warned_of(processes: Processes, kind: str) -> None:
    store: StoreServer = getattr(processes, kind)(*SAFE)
    async with opened(at(store)) as redis:
        assert await durability_warnings(Servers.one(redis)) == []
    store.close()


async def test_each_way_to_lose_jobs_is_warned_of(processes: Processes) -> None:
    store = processes.redis(*SAFE)
    async with opened(at(store)) as redis:
        await redis.config_set("maxmemory-policy", "allkeys-lru")
        assert await durability_warnings(Servers.one(redis)) == [], (
            "without a maxmemory it drops nothing"
        )
        await redis.config_set("maxmemory", "100mb")
        for policy, drops in {
            "allkeys-lru": True,
            "volatile-lru": False,
            "noeviction": False,
        }.items():
            await redis.config_set("maxmemory-policy", policy)
            found = [alarm.en for alarm in await alarms(Servers.one(redis), ["{dq_bucket_1}"])]
            assert [each.partition(",")[0] for each in found] == [
                "the store drops jobs when its memory is full"
            ] * drops
            assert (await health(Servers.one(redis))).durable is not drops
        await redis.config_set("appendonly", "no")
        assert await durability_warnings(Servers.one(redis)) == [
            "the store can lose jobs when it stops: set `appendonly yes` in its config"
        ]
    store.close()


async def test_a_store_that_refuses_to_tell_is_warned_of(processes: Processes) -> None:
    store = processes.redis()
    async with opened(at(store)) as redis:
        await redis.acl_setuser("default", enabled=True, nopass=True, commands=["-info"])
        (warning,) = await durability_warnings(Servers.one(redis))
    assert warning.startswith("the store refuses INFO")
    store.close()


async def test_of_a_store_that_is_away_nothing_is_said_but_that(processes: Processes) -> None:
    store = processes.redis()
    async with opened(at(store)) as redis:
        store.close()
        assert await durability_warnings(Servers.one(redis)) == []


@pytest.mark.parametrize(
    ("version", "warned"),
    [("5.0.14", True), ("6.0.20", True), ("6.2.0", False), ("7.2.4", False), ("10.0.1", False)],
)
async def test_a_store_that_is_too_old_is_warned_of(version: str, warned: bool) -> None:
    class Old(Redis):
        async def info(self, *_: object, **__: object) -> dict[str, object]:
            return {"redis_version": version, "aof_enabled": 1, "maxmemory": 0}

    async with Old() as redis:
        warnings = await durability_warnings(Servers.one(redis))
    assert warnings == [
        f"the store has version {version}: use Redis 6.2 or newer, or Valkey"
    ] * int(warned)


@pytest.mark.parametrize(
    ("ahead_s", "said"), [(3600, "3600 s ahead of"), (-60, "60 s behind"), (3, ""), (-3, "")]
)
def test_a_store_whose_clock_is_not_ours_is_warned_of(ahead_s: int, said: str) -> None:
    told = {
        "redis_version": "7.0",
        "aof_enabled": 1,
        "server_time_usec": (time.time() + ahead_s) * 1e6,
    }
    found = [warning.en.partition(" this machine's")[0] for warning in weaknesses(told)]
    assert found == [f"the store's clock is {said}"] * bool(said)


async def test_what_an_old_store_refuses_to_a_script_is_told_like_any_other_refusal(
    guarded: StoreServer,
) -> None:
    said = "ERR Error running script (call to f_1): @user_script:2: @user_script: 2: -READONLY it"
    async with opened(at(guarded, redis_password=SECRET)) as redis:
        with pytest.raises(ReadOnlyError, match=r"^it$"):
            await redis.eval(f"return {{err = '{said}'}}", 0)


async def test_the_embedded_store_is_reached_by_its_socket(guarded: StoreServer) -> None:
    # the settings of another store are ignored if there is a socket
    config = at(guarded, redis_db=5)
    with pytest.raises(StartupError) as refused:
        async with connect(config, str(Path(guarded.home, "sock"))):
            pass
    assert str(refused.value).startswith("embedded store: Authentication required")
