"""Who may connect to the beanstalkd port, and which topics they reach."""

import asyncio
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Final, NamedTuple, cast

import pytest

from delayqueue.beanstalk.server import BeanstalkServer
from delayqueue.beanstalk.tube_access import TubeAccess
from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError
from delayqueue.config.values import Address
from delayqueue.domain.access import Grant, Role, Scope
from delayqueue.engine.queue import DelayQueue
from delayqueue.server import listening
from tests.api.test_access import own_address
from tests.api_client import Api, open_api
from tests.certificates import make
from tests.figures import scrape
from tests.processes import LOOPBACK, Processes, QueueServer, StoreServer, free_port
from tests.waiting import until, until_async

from .conftest import accepting, opened
from .wire import Wire

TOKEN: Final = "secret-secret-secret"
GRANTS: Final = (Grant(Role.ADMIN, TOKEN, "*"),)
ADDRESS: Final = Address(LOOPBACK, 11300)

__all__ = ["own_address"]


class TwoTubes(NamedTuple):
    """A connection that watches two tubes."""

    api: Api
    wire: Wire
    gone: str
    stays: str
    take_away: Callable[[], Awaitable[None]]  # the first one, by a reload
    give_back: Callable[[], Awaitable[None]]


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (Config(beanstalk_address=ADDRESS, auth_tokens=GRANTS), "name in beanstalk_topics"),
        (
            Config(beanstalk_address=ADDRESS, proxy_user_header="Remote-User"),
            "name in beanstalk_topics",
        ),
        (Config(beanstalk_address=ADDRESS, beanstalk_tls=True), "needs tls_cert"),
    ],
)
def test_a_server_that_would_be_too_open_is_not_started(config: Config, says: str) -> None:
    with pytest.raises(StartupError, match=says):
        TubeAccess.of(config)


def test_what_is_reached_follows_the_settings() -> None:
    assert TubeAccess.of(Config()) == TubeAccess(
        loopback_only=True, scope=Scope(("*",)), most_bytes=65_535
    )
    config = Config(
        beanstalk_address=ADDRESS,
        auth_tokens=GRANTS,
        beanstalk_topics=("a", "b*"),
        protected_mode=False,
        max_body_bytes=2000,
    )
    assert TubeAccess.of(config) == TubeAccess(False, Scope(("a", "b*")), 2000)


async def test_an_idle_client_with_tls_does_not_delay_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "SHUTDOWN_S", 3600.0)
    pair = make(tmp_path, "server")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*pair)
    jobs = SimpleNamespace(polls=SimpleNamespace(requeue=lambda *_, **__: None))
    store = SimpleNamespace(registry=SimpleNamespace(numbers=None))
    nothing = cast("DelayQueue", SimpleNamespace(store=store, within=lambda _: jobs))
    server = BeanstalkServer(nothing, TubeAccess.of(Config()))
    address = Address(LOOPBACK, free_port())
    async with asyncio.timeout(20):  # a client would have 30 s to answer
        async with accepting(server, free_port(), address.port, context):
            client = await asyncio.to_thread(deaf_client, address, pair.context())
        assert not server.sessions
    with client:
        # that the server has ended it, it says
        assert await asyncio.to_thread(client.recv, 100) == b""


def deaf_client(address: Address, context: ssl.SSLContext) -> ssl.SSLSocket:
    """A connection that reads nothing after the answer to its command."""
    client = context.wrap_socket(socket.create_connection(address), server_hostname=address.host)
    client.settimeout(10)
    client.sendall(b"use t\r\n")
    assert client.recv(100) == b"USING t\r\n"
    return client


async def test_topics_out_of_reach_are_not_there(
    processes: Processes, redis_server: StoreServer
) -> None:
    server, port = opened(
        processes,
        redis_server,
        auth_tokens=f"admin:{TOKEN}",
        beanstalk_topics="mail, order.*",
        language="en",
    )
    async with open_api(server.url, TOKEN) as api, Wire.opened(port) as wire:
        for job_id, topic in (("701", "secret"), ("702", "mail"), ("late", "secret")):
            (await api.push(topic=topic, id=job_id, delay=0 if job_id != "late" else 99)).ok()
        for command in (
            *(b"use secret", b"watch secret", b"stats-tube secret", b"pause-tube secret 9"),
            *(b"put 0 0 1 1\r\na", b"peek-ready", b"reserve-job 701", b"delete 701"),
            *(b"peek 701", b"kick-job 701", b"stats-job 701"),
        ):
            assert await wire.ask(command) == b"NOT_FOUND\r\n"
        assert await wire.ask(b"list-tube-used") == b"USING default\r\n"
        assert await wire.ask(b"kick 5") == b"KICKED 0\r\n"
        assert await wire.ask(b"reserve-with-timeout 0") == b"TIMED_OUT\r\n"
        assert b"secret" not in await wire.ask(b"list-tubes")
        assert (await wire.stats(b"stats"))["current-jobs-ready"] == "1"
        assert await wire.ask(b"watch mail") == b"WATCHING 2\r\n"
        assert (await wire.reserve())[0] == 702
        assert await wire.ask(b"use order.eu") == b"USING order.eu\r\n"
        assert await wire.ask(b"delete %d" % await wire.put(b"x")) == b"DELETED\r\n"
        assert (await api.get("701")).ok()["state"] == "ready"
    server.close()


async def test_protected_mode_cuts_strangers_off(
    processes: Processes,
    redis_server: StoreServer,
    own_address: str,  # the fixture
) -> None:
    for protected in ("yes", "no"):
        port = free_port()
        server = processes.server(
            redis_server,
            beanstalk_address=f"0.0.0.0:{port}",
            protected_mode=protected,
            auth_tokens=f"admin:{TOKEN}",  # they do not count here
            beanstalk_topics="*",
        )
        reader, writer = await asyncio.open_connection(own_address, port)
        writer.write(b"list-tube-used\r\n")
        try:
            answer = await reader.readline()
        except ConnectionError:
            answer = b""
        assert answer == (b"" if protected == "yes" else b"USING default\r\n")
        writer.close()
        async with Wire.opened(port) as local:
            assert await local.ask(b"list-tube-used") == b"USING default\r\n"
        server.close()


async def test_strangers_are_cut_off_when_protected_mode_is_switched_on(
    processes: Processes,
    redis_server: StoreServer,
    own_address: str,  # the fixture
) -> None:
    port = free_port()
    head = f"beanstalk_address = 0.0.0.0:{port}\nprotected_mode = "
    server = processes.configured(f"{head}no\n", redis_server)
    server.start()
    stranger = Wire(*await asyncio.open_connection(own_address, port))
    async with Wire.opened(port) as local:
        number = await stranger.put(b"x")
        assert (await stranger.reserve())[0] == number
        await changed(server, f"{head}yes\n", "reloaded: ")
        with suppress(ConnectionError):
            assert await stranger.rest() == b""
        stranger.close()
        assert (await local.reserve())[0] == number, "it is given back"
    server.close()


async def test_the_server_speaks_tls(
    processes: Processes, redis_server: StoreServer, tmp_path: Path
) -> None:
    pair, client = make(tmp_path, "server"), make(tmp_path, "client")
    known = pair.context(client)
    port = free_port()
    server = processes.server(
        redis_server,
        known,
        tls_cert=pair.cert,
        tls_key=pair.key,
        tls_client_ca=client.cert,
        beanstalk_tls="yes",
        beanstalk_address=f"{LOOPBACK}:{port}",
    )
    async with Wire.opened(port, known) as wire:
        number = await wire.put(b"x" * 60_000)
        assert await wire.reserve() == (number, b"x" * 60_000)
        assert await wire.ask(b"delete %d" % number) == b"DELETED\r\n"
        await wire.send(b"use a\r\nquit\r\n")
        assert await wire.rest() == b"USING a\r\n"
    with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
        async with Wire.opened(port, pair.context()) as stranger:
            assert await stranger.ask(b"list-tube-used")
    async with Wire.opened(port) as plain:
        assert b"USING" not in await plain.end()
    assert "ERROR" not in server.logged()
    server.close()


async def test_what_is_reached_is_read_again(
    processes: Processes, redis_server: StoreServer
) -> None:
    port = free_port()
    head = f"beanstalk_address = {LOOPBACK}:{port}\nbeanstalk_topics = "
    server = processes.configured(f"{head}a\n", redis_server)
    server.start()
    async with Wire.opened(port) as wire:
        assert await wire.ask(b"use b") == b"NOT_FOUND\r\n"
        await changed(server, f"{head}b\n", "reloaded: ")
        assert await wire.ask(b"use b") == b"USING b\r\n"
        assert await wire.ask(b"use a") == b"NOT_FOUND\r\n"
        await changed(server, f"{head}\nauth_tokens = admin:{TOKEN}\n", "settings stay: ")
        assert await wire.ask(b"use a") == b"NOT_FOUND\r\n"
    assert "name in beanstalk_topics" in server.logged()
    server.close()


@pytest.fixture
async def two_tubes(
    processes: Processes, redis_server: StoreServer, topic: str
) -> AsyncIterator[TwoTubes]:
    """A server whose clients reach two tubes."""
    port = free_port()
    head = (
        f"beanstalk_address = {LOOPBACK}:{port}\nauth_tokens = admin:{TOKEN}\nbeanstalk_topics = "
    )
    gone, stays = f"{topic}.gone", f"{topic}.stays"
    server = processes.configured(f"{head}{gone}, {stays}\n", redis_server)
    server.start()

    def reach(*tubes: str) -> Callable[[], Awaitable[None]]:
        return partial(changed, server, f"{head}{', '.join(tubes)}\n", "reloaded: ")

    async with open_api(server.url, TOKEN) as api, Wire.opened(port) as wire:
        for tube in (gone, stays):
            await wire.ask(b"watch " + tube.encode())
        yield TwoTubes(api, wire, gone, stays, reach(stays), reach(gone, stays))
    server.close()


async def test_who_waits_gets_jobs_of_the_tubes_that_reloads_leave(two_tubes: TwoTubes) -> None:
    api, wire, gone, stays, take_away, give_back = two_tubes
    answer = asyncio.create_task(wire.ask(b"reserve"))
    await until_async(partial(shows, api, "delayqueue_waiting_polls"))
    await take_away()
    (await api.push(topic=gone, id="801", delay=0, body="secret")).ok()
    (await api.push(topic=stays, id="802", delay=0, body="open")).ok()
    assert await answer == b"RESERVED 802 4\r\nopen\r\n"
    secret = (await api.get("801")).ok()
    assert (secret["state"], secret["attempt"]) == ("ready", 0)
    answer = asyncio.create_task(wire.ask(b"reserve"))
    await until_async(partial(shows, api, "delayqueue_waiting_polls"))
    await give_back()
    assert await answer == b"RESERVED 801 6\r\nsecret\r\n"


async def test_jobs_of_a_tube_that_a_reload_has_taken_away_are_given_back_at_the_end(
    two_tubes: TwoTubes,
) -> None:
    """What their client tried in vain does not matter."""
    api, wire, gone, _, take_away, _ = two_tubes
    commands = {"811": b"delete 811", "812": b"release 812 0 0", "813": b"bury 813 0"}
    commands |= {"814": b"touch 814", "815": b"list-tube-used"}
    for job_id in commands:
        (await api.push(topic=gone, id=job_id, delay=0, ttr=3600)).ok()
        assert (await wire.reserve())[0] == int(job_id)
    await take_away()
    assert [await wire.ask(command) for command in commands.values()] == (
        [b"NOT_FOUND\r\n"] * 4 + [b"USING default\r\n"]
    )
    assert await states(api, commands) == {"reserved"}
    wire.close()

    async def all_ready() -> bool:
        return await states(api, commands) == {"ready"}

    await until_async(all_ready)


async def shows(api: Api, metric: str, **labels: str) -> bool:
    """Whether a metric is 1."""
    return (await scrape(api)).sum(metric, **labels) == 1


async def states(api: Api, ids: Iterable[str]) -> set[str]:
    return {(await api.get(job_id)).ok()["state"] for job_id in ids}


async def changed(server: QueueServer, text: str, said: str) -> None:
    """Write this into its file, and wait until the log confirms it once more."""
    before = server.logged().count(said)
    (server.home / "delay-queue.conf").write_text(text, encoding="utf-8")
    server.send(signal.SIGHUP)
    await until(lambda: server.logged().count(said) > before)
