"""TLS: the server's certificate, its clients' certificates, and new ones without a restart."""

import asyncio
import pickle
import re
import socket
import ssl
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import uvloop

from delayqueue.cli import healthy as health_check
from delayqueue.cli.healthy import healthy
from delayqueue.cli.subcommand import DONE, UNREACHABLE
from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError
from delayqueue.config.values import Address
from delayqueue.web.tls import Certificate, Tls
from tests.api_client import open_api
from tests.certificates import Pair, make
from tests.processes import LOOPBACK, Processes, QueueServer, StoreServer
from tests.waiting import until_async

from .conftest import AIOHTTP, EXPRESS
from .dialogue import post


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Pair, Pair]:
    """A server's and a client's."""
    folder = tmp_path_factory.mktemp("tls")
    return make(folder, "server"), make(folder, "client")


@pytest.mark.parametrize("headers", [EXPRESS, AIOHTTP], ids=["express", "aiohttp"])
async def test_a_connection_over_tls_goes_on_and_ends_as_its_client_says(
    processes: Processes,
    redis_server: StoreServer,
    pairs: tuple[Pair, Pair],
    headers: Mapping[str, str],
) -> None:
    """Long answers and short ones; writing is paused and resumed before the first write, and after it."""
    own, _ = pairs
    context = own.context()
    server = processes.server(redis_server, context, tls_cert=own.cert, tls_key=own.key)
    async with asyncio.timeout(60), open_api(server.url, tls=context, headers=headers) as api:
        (await api.push(topic="t", id="a", body="x" * 900_000)).ok()
        for n in range(20):
            assert len((await api.call("/get", {"ids": ["a"] * (1 + n % 4)})).ok()) == 1 + n % 4
        for _ in range(10):
            assert b"200 OK" in await to_the_end(server, context, headers)
    async with open_api(f"http://{server.address}") as plain:
        with pytest.raises(aiohttp.ClientError):
            await plain.get("a")
    assert "ERROR" not in server.logged()


async def to_the_end(
    server: QueueServer, context: ssl.SSLContext, headers: Mapping[str, str]
) -> bytes:
    """All that arrives on a connection that the server closes after its answer."""
    reader, writer = await asyncio.open_connection(LOOPBACK, server.port, ssl=context)
    writer.write(post("/get", {"id": "x"}, {"Connection": "close", **headers}))
    got = await reader.read()
    await closed(writer)
    return got


async def closed(writer: asyncio.StreamWriter) -> None:
    """Close it, and wait for the end of TLS: nothing of it may be left for the next test."""
    writer.close()
    with suppress(ssl.SSLError, ConnectionError):
        await writer.wait_closed()


async def test_the_health_check_reads_the_same_settings(
    processes: Processes,
    redis_server: StoreServer,
    pairs: tuple[Pair, Pair],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own, _ = pairs
    server = processes.server(redis_server, own.context(), tls_cert=own.cert, tls_key=own.key)
    config = Config(bind_address=Address(LOOPBACK, server.port), tls_cert=own.cert)
    assert healthy(config, Namespace()) == DONE
    assert healthy(replace(config, tls_cert=None), Namespace()) == UNREACHABLE
    monkeypatch.setattr(health_check, "ANSWER_S", 0.2)
    server.freeze()
    assert healthy(config, Namespace()) == UNREACHABLE
    server.kill()


async def test_a_client_whose_certificate_is_refused_is_told_and_logged(
    processes: Processes, redis_server: StoreServer, pairs: tuple[Pair, Pair]
) -> None:
    own, client = pairs
    known = own.context(client)
    server = processes.server(
        redis_server, known, tls_cert=own.cert, tls_key=own.key, tls_client_ca=client.cert
    )
    cases = {
        own.context(own): ("TLSV1_ALERT_UNKNOWN_CA", "self-signed certificate"),
        own.context(): ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "it sent no certificate"),
    }
    for stranger, (alert, why) in cases.items():
        reader, writer = await asyncio.open_connection(LOOPBACK, server.port, ssl=stranger)
        with pytest.raises(ssl.SSLError, match=alert):
            await reader.read()
        await closed(writer)
        says = f"refused a TLS client without a certificate from tls_client_ca: {why}"
        await until_async(lambda says=says: logged(server, says))  # type: ignore[misc]
    assert await admits(server, known)
    config = Config(
        bind_address=Address(LOOPBACK, server.port), tls_cert=own.cert, tls_client_ca=client.cert
    )
    assert healthy(config, Namespace()) == DONE  # it refuses us, so it is alive
    server.close()
    assert healthy(config, Namespace()) == UNREACHABLE


async def test_an_authority_that_is_removed_is_no_longer_trusted(
    processes: Processes, redis_server: StoreServer, pairs: tuple[Pair, Pair], tmp_path: Path
) -> None:
    own, client = pairs
    next_client, authorities = make(tmp_path, "next"), tmp_path / "ca.pem"
    authorities.write_bytes(client.cert.read_bytes())
    former, present = own.context(client), own.context(next_client)
    server = processes.server(
        redis_server, former, tls_cert=own.cert, tls_key=own.key, tls_client_ca=authorities
    )
    authorities.write_bytes(next_client.cert.read_bytes())
    await until_async(lambda: admits(server, present))
    assert not await admits(server, own.context(client))


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_session_is_resumed_until_its_authority_is_removed(
    pairs: tuple[Pair, Pair], run: Callable[[Any], None], version: ssl.TLSVersion
) -> None:
    own, client = pairs
    config = Config(tls_cert=own.cert, tls_key=own.key)
    of_client, of_another = (
        Certificate.of(replace(config, tls_client_ca=pair.cert)) for pair in (client, own)
    )
    assert of_client
    assert of_another
    tls, context = Tls.of(of_client), own.context(client)
    context.minimum_version = context.maximum_version = version

    def visit(port: int, session: ssl.SSLSession | None) -> tuple[ssl.SSLSession | None, bool]:
        """The session of a connection, and whether it is the former one. Raises OSError if it is refused."""
        with context.wrap_socket(
            socket.create_connection((LOOPBACK, port), timeout=60),
            server_hostname=LOOPBACK,
            session=session,
        ) as connection:
            assert connection.recv(1) == b"!"
            return connection.session, bool(connection.session_reused)

    def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"!")
        writer.close()

    async def visits() -> None:
        server = await asyncio.start_server(greet, LOOPBACK, 0, ssl=tls)
        async with server:
            port = server.sockets[0].getsockname()[1]
            session, _ = await asyncio.to_thread(visit, port, None)
            session, is_resumed = await asyncio.to_thread(visit, port, session)
            assert is_resumed
            tls.use(of_another)
            with pytest.raises(ssl.SSLError, match="UNKNOWN_CA"):
                await asyncio.to_thread(visit, port, session)

    run(visits())


async def admits(server: QueueServer, context: ssl.SSLContext) -> bool:
    """Whether a client with this context is served."""
    async with open_api(server.url, tls=context) as api:
        try:
            (await api.get("x")).ok()
        except aiohttp.ClientError:
            return False
    return True


async def logged(server: QueueServer, text: str) -> bool:
    return text in server.logged()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tls_cert": "server.pem"}, "tls_cert = "),  # no key in it
        ({"tls_cert": "nowhere.pem"}, "No such file or directory"),
        ({"tls_cert": "server.pem", "tls_key": "client.key"}, "key values mismatch"),
        ({"tls_key": "server.key"}, "tls_key and tls_client_ca need tls_cert"),
        (
            {"tls_cert": "server.pem", "tls_key": "server.key", "tls_client_ca": "server.key"},
            "tls_client_ca = ",
        ),
    ],
)
def test_a_certificate_that_does_not_fit_is_refused(
    pairs: tuple[Pair, Pair], settings: dict[str, str], message: str
) -> None:
    """This is what a server's start and its reload call."""
    files: dict[str, Any] = {
        option: pairs[0].cert.parent / name for option, name in settings.items()
    }
    with pytest.raises(StartupError, match=re.escape(message)):
        Certificate.of(replace(Config(), **files))


@pytest.mark.parametrize(("days", "warnings"), [(-2, 1), (0, 0), (2, 1)])
def test_a_certificate_that_is_not_valid_now_is_used_with_a_warning(
    pairs: tuple[Pair, Pair],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    days: int,
    warnings: int,
) -> None:
    pair, other = pairs
    now_s = time.time() + days * 86400
    monkeypatch.setattr(time, "time", lambda: now_s)
    assert Certificate.of(Config(tls_cert=pair.cert, tls_key=pair.key, tls_client_ca=other.cert))
    assert [message.count("clients refuse it") for message in caplog.messages] == [1] * warnings


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_a_certificate_is_used_as_it_was_read_whatever_becomes_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    pair, other = make(tmp_path, "server"), make(tmp_path, "other")
    files = sorted(tmp_path.iterdir())
    config = Config(tls_cert=pair.cert, tls_key=pair.key, tls_client_ca=other.cert)
    certificate = pickle.loads(pickle.dumps(Certificate.of(config)))
    for file in files:
        file.write_bytes(b"")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    context = certificate.context()
    assert [each["serialNumber"] for each in context.get_ca_certs()]
    assert sorted(tmp_path.iterdir()) == files


def test_on_linux_a_key_is_on_no_disk(
    pairs: tuple[Pair, Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    assert Certificate.of(Config(tls_cert=pairs[0].cert, tls_key=pairs[0].key))
