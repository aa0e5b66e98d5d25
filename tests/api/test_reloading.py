"""SIGHUP: settings that can change at run time do, others are named in the log, and no client notices."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.api.jobs import waiting_poll
from tests.api.test_access import own_address
from tests.api_client import FORBIDDEN, OK, UNAUTHORIZED, Api, open_api
from tests.processes import (
    LOOPBACK,
    Processes,
    QueueServer,
    StoreServer,
    environment,
    free_port,
)
from tests.waiting import until, until_async

__all__ = ["own_address"]

OLD: Final = "old-old-old-old-old"
NEW: Final = "new-new-new-new-new"
CALLS: Final = 20  # each on its own connection: the kernel spreads them over the workers
START_S: Final = 180.0  # of a worker, on a busy machine
REFUSED: Final = "not reloaded, the previous settings stay"
AS_JSON: Final = '"message": "reloaded: '


class Reloading:
    """A server whose config file is changed."""

    def __init__(self, server: QueueServer, workers: int, head: str) -> None:
        self.server = server
        self.workers = workers
        self.processes = workers + (workers > 1)
        self.file = server.home / "delay-queue.conf"
        self._head = head
        self._read = 0  # bytes of the log that belong to earlier tests

    async def all_serve(self) -> None:
        """Wait for the workers that are not ready yet."""
        await until(
            lambda: self.server.logged().count("serving on") >= self.workers, within_s=START_S
        )

    async def change(self, text: str) -> None:
        """Write this into the file, and wait until all processes know it."""
        known = self.count("reloaded: ")
        self.write(text)
        await until(lambda: self.count("reloaded: ") >= known + self.processes)

    def write(self, text: str) -> None:
        """Write this into the file, and signal the server."""
        self.file.write_text(self._head + text, encoding="utf-8")
        self.server.send(signal.SIGHUP)

    def count(self, text: str) -> int:
        """How often it is in the log of this test."""
        return self.server.log.read_bytes()[self._read :].count(text.encode())

    async def begin(self, text: str) -> None:
        """Put these settings in force, and begin the log of another test: all of the one before is written then."""
        await self.all_serve()
        known = self.count(AS_JSON)
        self.write(f"{text}log_format = json\n")
        await until(lambda: self.count(AS_JSON) >= known + self.processes)
        await self.change(text)
        self._read = self.server.log.stat().st_size

    async def codes(self, token: str) -> set[int]:
        """What all workers answer to a client with this token."""

        async def code() -> int:
            async with open_api(self.server.url, token) as api:
                return (await api.call("/topics", {})).code

        return set(await asyncio.gather(*(code() for _ in range(CALLS))))


def start(processes: Processes, store: StoreServer | None, workers: int) -> Reloading:
    """A server that is ready, if perhaps not with all of its workers; on an embedded store if none is given."""
    head = "" if store else "redis.host = embedded\n"
    server = processes.configured(f"{head}auth_tokens = admin:{OLD}\n", store, workers=workers)
    server.start()
    return Reloading(server, workers, head)


@pytest.fixture(scope="module", params=[1, 2], ids=["alone", "workers"])
def shared(
    request: pytest.FixtureRequest, processes: Processes, redis_server: StoreServer
) -> Iterator[Reloading]:
    """One process with a Redis, or two with an embedded store."""
    reloading = start(processes, None if request.param > 1 else redis_server, request.param)
    pid = reloading.server.pid
    yield reloading
    assert reloading.server.pid == pid
    assert reloading.server.stop() == 0


@pytest.fixture
async def reloading(shared: Reloading) -> Reloading:
    """The same, with its first settings and an empty log."""
    await shared.begin(f"auth_tokens = admin:{OLD}\n")
    return shared


async def test_other_tokens_let_in_from_then_on(reloading: Reloading) -> None:
    assert await reloading.codes(OLD) == {OK}
    await reloading.change(f"auth_tokens = admin:{NEW}\n")
    assert await reloading.codes(NEW) == {OK}
    assert await reloading.codes(OLD) == {UNAUTHORIZED}


async def test_who_waits_goes_on_waiting(reloading: Reloading, topic: str) -> None:
    async with open_api(reloading.server.url, OLD) as api:
        poll = await waiting_poll(api, topic, timeout=30)
        await reloading.change(f"auth_tokens = admin:{OLD}\nlog_level = debug\n")
        (await api.push(topic=topic, id=topic, delay=0)).ok()
        assert (await poll).ok()["id"] == topic


async def test_the_sections_of_the_file_are_declared_anew(reloading: Reloading, topic: str) -> None:
    tokens = f"auth_tokens = admin:{OLD}\n"
    async with open_api(reloading.server.url, OLD) as api:
        reloading.write(f"{tokens}[limit {topic}]\nrate = 5\n")
        await until_async(lambda: are_declared(api, topic, limit=True, schedules=[]))
        reloading.write(f"{tokens}[schedule {topic}]\ntopic = {topic}\nevery = 1h\n")
        await until_async(lambda: are_declared(api, topic, limit=False, schedules=[topic]))


async def are_declared(api: Api, topic: str, *, limit: bool, schedules: list[str]) -> bool:
    found = (await api.call("/limit", {"topic": topic})).ok()["declared"]
    names = [one["name"] for one in (await api.call("/schedules", {})).ok()]
    return (found, names) == (limit, schedules)


async def test_what_is_wrong_changes_nothing(reloading: Reloading) -> None:
    reloading.write(f"auth_tokens = admin:{NEW}\nlog_level = loud\nlanguage = fr\n")
    await until(lambda: reloading.count(REFUSED) >= 2)
    assert reloading.count("log_level = loud: must be one of") >= 1
    assert reloading.count("language = fr: must be one of") >= 1
    assert await reloading.codes(OLD) == {OK}
    reloading.write(f"auth_tokens = admin:{NEW}\nauth_tokens_file = nowhere\n")
    await until(lambda: reloading.count("auth_tokens_file = nowhere: ") >= 1)
    assert await reloading.codes(NEW) == {UNAUTHORIZED}


async def test_a_reload_never_takes_protection_away(reloading: Reloading) -> None:
    """Each way in: tests/unit/test_config.py."""
    reloading.write("")
    await until(lambda: reloading.count("no token would be left; only a restart does that") > 0)
    assert await reloading.codes(OLD) == {OK}
    assert await reloading.codes("") == {UNAUTHORIZED}


async def test_what_takes_a_restart_is_named_and_the_rest_changes(reloading: Reloading) -> None:
    await reloading.change(
        f"auth_tokens = admin:{NEW}\nmax_body = 2048\ntls_cert = cert.pem\nscheduler = wheel\n"
    )
    text = "not changed: tls_cert, scheduler, max_body; this takes a restart"
    await until(lambda: reloading.count(text) >= 1)
    assert await reloading.codes(NEW) == {OK}


async def test_the_log_says_as_much_as_is_asked_for(reloading: Reloading) -> None:
    tokens = f"auth_tokens = admin:{OLD}\n"
    await reloading.codes(OLD)
    assert reloading.count("POST /topics") == 0
    await reloading.change(f"{tokens}access_log = yes\n")
    await reloading.codes(OLD)
    await until(lambda: reloading.count("POST /topics") == CALLS)
    await reloading.change(f"{tokens}access_log = yes\nlog_level = info\nlog_format = json\n")
    await until(lambda: reloading.count('{"time"') > 0)


async def test_settings_are_shown_as_they_are_in_force(reloading: Reloading) -> None:
    await reloading.change(f"auth_tokens = admin:{OLD}\nlanguage = en\nmax_polls = 7\n")
    async with open_api(reloading.server.url, OLD) as api:
        settings = (await api.call("/stats", {})).ok()["settings"]
    assert (settings["language"], settings["max_polls"]) == ("en", "20000")


async def test_who_has_one_of_the_first_tokens_needs_no_loopback(
    processes: Processes, redis_server: StoreServer, own_address: str
) -> None:
    """Protected mode is for servers without tokens."""
    port = free_port()
    server = processes.configured("", redis_server, bind_address=f"0.0.0.0:{port}")
    server.start()
    reloading = Reloading(server, 1, "")
    async with open_api(f"http://{own_address}:{port}", NEW) as stranger:
        assert (await stranger.call("/topics", {})).code == FORBIDDEN
        await reloading.change(f"auth_tokens = admin:{NEW}\n")
        assert (await stranger.call("/topics", {})).code == OK
    assert await reloading.codes("") == {UNAUTHORIZED}
    assert server.stop() == 0


def begun(file: Path, settings: Mapping[str, object], out: Path) -> subprocess.Popen[bytes]:
    """A server with this config file."""
    command = [sys.executable, "-m", "delayqueue", "-c", str(file)]
    with out.open("wb") as log:
        return subprocess.Popen(command, env=environment(settings), stderr=log)


async def test_a_signal_while_the_server_starts_does_not_end_it(
    redis_server: StoreServer, tmp_path: Path
) -> None:
    """It is sent while the server reads its file, long before it can reload."""
    file, out = tmp_path / "delay-queue.conf", tmp_path / "out"
    os.mkfifo(file)
    settings = redis_server.settings(0) | {"bind_address": f"{LOOPBACK}:{free_port()}"}
    server = begun(file, settings, out)
    try:
        with file.open("w", encoding="utf-8") as writer:  # it is reading
            file.unlink()
            file.write_text("language = en\n", encoding="utf-8")
            server.send_signal(signal.SIGHUP)
            writer.write("language = zh\n")
        await until(lambda: "reloaded: " in out.read_text(), within_s=START_S)
        server.terminate()
        assert server.wait(START_S) == 0
    finally:
        server.kill()
        server.wait()
