"""A reload of a server with several processes: all use what the first one has read, and no client notices."""

import asyncio
import os
import signal
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import aiohttp
import pytest

from tests.api.test_reloading import CALLS, NEW, OLD, REFUSED, START_S, Reloading
from tests.api.test_workers import serving
from tests.api_client import OK, UNAUTHORIZED, open_api
from tests.certificates import Pair, make
from tests.processes import LOOPBACK, Processes, QueueServer, StoreServer
from tests.waiting import until, until_async

WORKERS: Final = 3
TOKENS: Final = f"auth_tokens = admin:{OLD}\n"


@pytest.fixture(scope="module")
def made(processes: Processes, redis_server: StoreServer) -> Iterator[QueueServer]:
    server = processes.configured(TOKENS, redis_server, workers=WORKERS)
    server.start()
    yield server
    assert server.stop() == 0


@pytest.fixture
async def many(made: QueueServer) -> Reloading:
    """A server of several processes, with its first settings and an empty log."""
    reloading = Reloading(made, WORKERS, "")
    await reloading.begin(TOKENS)
    return reloading


async def all_answer(reloading: Reloading, token: str, code: int) -> bool:
    return await reloading.codes(token) == {code}


class Load:
    """Pushes and pops that go on meanwhile, on new connections and on kept ones."""

    def __init__(self) -> None:
        self.done = 0
        self.failed: list[object] = []
        self._ends = False

    @asynccontextmanager
    async def running(self, url: str, topic: str, token: str) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            for number in range(6):
                group.create_task(self._run(url, f"{topic}-{number}", token))
            try:
                yield
            finally:
                self._ends = True

    async def _run(self, url: str, topic: str, token: str) -> None:
        at = 0
        while not self._ends:
            async with open_api(url, token) as api:
                for _ in range(5):
                    at += 1
                    try:
                        pushed = await api.push(topic=topic, id=f"{topic}-{at}", delay=0, body="x")
                        popped = await api.pop(topic, timeout=20)
                        answer = pushed.code, popped.code, popped.data and popped.data["id"]
                        if answer != (OK, OK, f"{topic}-{at}"):
                            self.failed.append(answer)
                        (await api.finish(popped.data["id"])).ok()
                    except (aiohttp.ClientError, AssertionError, TypeError) as error:
                        self.failed.append(error)
                    self.done += 1


async def test_clients_notice_no_reload(many: Reloading, topic: str) -> None:
    load = Load()
    async with load.running(many.server.url, topic, OLD):
        for number in range(10):
            begun = load.done
            await many.change(f"{TOKENS}language = {'en' if number % 2 else 'zh'}\n")
            await until(lambda begun=begun: load.done > begun + 10)  # type: ignore[misc]
    assert load.failed == []
    assert load.done > 100


async def test_a_process_that_is_killed_in_the_midst_of_reloads_comes_back_with_the_last_one(
    many: Reloading,
) -> None:
    victims = serving(many.server)
    for number in range(60):
        many.write(f"auth_tokens = admin:{NEW}-{number}\n")
        if number % 20 == 10:
            os.kill(victims[number // 20], signal.SIGKILL)
        await asyncio.sleep(0.02)
    await until(lambda: many.count("serving on") >= WORKERS, within_s=START_S)
    await until_async(lambda: all_answer(many, f"{NEW}-{number}", OK), within_s=START_S)
    assert await many.codes(OLD) == {UNAUTHORIZED}
    assert many.count("died") == WORKERS


async def test_a_process_that_starts_again_has_what_is_in_force_though_its_file_is_broken(
    many: Reloading,
) -> None:
    tokens = many.server.home / "tokens"
    tokens.write_text(f"admin:{NEW}\n", encoding="utf-8")
    await many.change(f"auth_tokens_file = {tokens}\n")
    tokens.write_text("nonsense", encoding="utf-8")
    await until(lambda: many.count(REFUSED) > 0)
    os.kill(serving(many.server)[0], signal.SIGKILL)
    await until(lambda: many.count("serving on") > 0, within_s=START_S)
    assert await many.codes(NEW) == {OK}
    assert many.count("restarting it") == 1


@pytest.fixture
def pairs(tmp_path: Path) -> tuple[Pair, Pair]:
    return make(tmp_path, "old"), make(tmp_path, "new")


async def trusted(server: QueueServer, pair: Pair) -> list[bool]:
    """Whether a client that trusts this certificate only reaches the server, for many connections at once."""
    context = pair.context()

    async def one() -> bool:
        try:
            _, writer = await asyncio.open_connection(LOOPBACK, server.port, ssl=context)
        except (ssl.SSLError, ConnectionError):
            return False
        writer.close()
        with suppress(ssl.SSLError, ConnectionError):
            await writer.wait_closed()
        return True

    return list(await asyncio.gather(*(one() for _ in range(2 * CALLS))))


async def test_all_processes_serve_another_certificate_and_none_a_broken_one(
    processes: Processes, redis_server: StoreServer, pairs: tuple[Pair, Pair]
) -> None:
    old, new = pairs
    cert, key = old.cert.with_name("cert.pem"), old.key.with_name("key.pem")
    cert.write_bytes(old.cert.read_bytes())
    key.write_bytes(old.key.read_bytes())
    text = f"tls_cert = {cert}\ntls_key = {key}\n{TOKENS}"
    server = processes.configured(text, redis_server, tls=old.context(), workers=WORKERS)
    server.start()
    reloading = Reloading(server, WORKERS, "")
    await reloading.all_serve()
    assert await trusted(server, old) == [True] * 2 * CALLS

    cert.write_bytes(new.cert.read_bytes())  # and not yet its key
    await until(lambda: reloading.count(REFUSED) > 0)
    await until(lambda: "key values mismatch" in server.logged())
    assert await trusted(server, old) == [True] * 2 * CALLS
    assert reloading.count("reloaded: ") == 0

    os.kill(serving(server)[0], signal.SIGKILL)  # the next one has the certificate that is in force
    await until(lambda: reloading.count("serving on") > WORKERS, within_s=START_S)
    assert await trusted(server, old) == [True] * 2 * CALLS

    key.write_bytes(new.key.read_bytes())
    await until_async(lambda: all_trusted(server, new))
    assert await trusted(server, old) == [False] * 2 * CALLS
    assert server.stop() == 0


async def all_trusted(server: QueueServer, pair: Pair) -> bool:
    return all(await trusted(server, pair))
