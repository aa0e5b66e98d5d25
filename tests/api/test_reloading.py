"""SIGHUP: settings that can change at run time do, others are named in the log, and no client notices."""

import asyncio
import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from threading import Event, Thread
from typing import Final

import aiohttp
import pytest

from tests.api.jobs import waiting_poll
from tests.api.test_access import own_address
from tests.api.test_workers import serving
from tests.api_client import FORBIDDEN, OK, UNAUTHORIZED, Api, open_api
from tests.certificates import Pair, make
from tests.processes import Processes, QueueServer, StoreServer, free_port
from tests.waiting import until, until_async

__all__ = ["own_address"]

OLD: Final = "old-old-old-old-old"
NEW: Final = "new-new-new-new-new"
CALLS: Final = 20  # each on its own connection: the kernel spreads them over the workers
START_S: Final = 180.0  # of a worker, on a busy machine
REFUSED: Final = "not reloaded, the previous settings stay"


class Reloading:
    """A server whose config file is changed."""

    def __init__(self, server: QueueServer, workers: int, head: str) -> None:
        self.server = server
        self.workers = workers
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
        processes = self.workers + (self.workers > 1)
        await until(lambda: self.count("reloaded: ") >= known + processes)

    def write(self, text: str) -> None:
        """Write this into the file, and signal the server."""
        self.file.write_text(self._head + text, encoding="utf-8")
        self.server.send(signal.SIGHUP)

    def count(self, text: str) -> int:
        """How often it is in the log of this test."""
        return self.server.log.read_bytes()[self._read :].count(text.encode())

    def forget(self) -> None:
        """Begin the log of another test."""
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


alone: Final = pytest.mark.parametrize("shared", [1], ids=["alone"], indirect=True)
of_workers: Final = pytest.mark.parametrize("shared", [2], ids=["workers"], indirect=True)


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
    await shared.all_serve()
    token = secrets.token_hex(10)
    shared.write(f"auth_tokens = admin:{token}\n")
    await until_async(
        lambda: admits(shared, token)
    )  # so no process has yet to reload what was before
    await shared.change(f"auth_tokens = admin:{OLD}\n")
    shared.forget()
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


OPEN_DOORS: Final = {
    "an empty file": ("", "no token would be left; only a restart does that"),
    "a file that was cut off": (
        "language = en\nlog_level = inf",
        "log_level = inf: must be one of",
    ),
    "protected mode": (
        f"auth_tokens = admin:{NEW}\nprotected_mode = no\n",
        "protected_mode would end; only a restart does that",
    ),
}


@pytest.mark.parametrize(("text", "says"), OPEN_DOORS.values(), ids=OPEN_DOORS.keys())
async def test_a_reload_never_opens_a_door(reloading: Reloading, text: str, says: str) -> None:
    reloading.write(text)
    await until(lambda: reloading.count(says) > 0 and reloading.count(REFUSED) > 0)
    assert await reloading.codes(OLD) == {OK}
    assert await reloading.codes("") == {UNAUTHORIZED}


@contextmanager
def filled(pipe: Path, text: str) -> Iterator[None]:
    """Give the text to all that read the pipe meanwhile."""
    ended = Event()

    def fill() -> None:
        while not ended.wait(0.01):
            with suppress(OSError):  # nobody reads now
                end = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
                with open(end, "w", encoding="utf-8") as file:  # noqa: PTH123
                    file.write(text)

    thread = Thread(target=fill)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def has_open(server: QueueServer, file: Path) -> bool:
    """Whether the server has the file open."""
    with suppress(OSError):  # others come and go meanwhile
        return file in {one.readlink() for one in Path(f"/proc/{server.pid}/fd").iterdir()}
    return False


@alone
async def test_a_file_that_takes_long_stops_nothing_else(reloading: Reloading) -> None:
    tokens = reloading.server.home / "tokens"
    os.mkfifo(tokens)
    with os.fdopen(os.open(tokens, os.O_RDWR), "w") as slow:
        reloading.write(f"auth_tokens_file = {tokens}\n")
        await until(lambda: has_open(reloading.server, tokens))
        assert reloading.server.probe("/healthz") == HTTPStatus.OK
        assert await reloading.codes(OLD) == {OK}
        slow.write(f"admin:{NEW}\n")
    with filled(tokens, f"admin:{NEW}\n"):
        await until_async(lambda: admits(reloading, NEW))
        await reloading.change(f"auth_tokens = admin:{OLD}\n")


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


@of_workers
async def test_a_worker_that_starts_later_has_the_new_settings(reloading: Reloading) -> None:
    await reloading.change(f"auth_tokens = admin:{NEW}\n")
    os.kill(serving(reloading.server)[0], signal.SIGKILL)
    await until(lambda: reloading.count("serving on") > 0, within_s=START_S)
    assert await reloading.codes(NEW) == {OK}


@of_workers
async def test_a_worker_that_is_about_to_start_reads_the_settings_as_well(
    reloading: Reloading,
) -> None:
    """The signal must not end a server that does not listen yet."""
    os.kill(serving(reloading.server)[0], signal.SIGKILL)
    await until(lambda: len(serving(reloading.server)) == 2)
    for number in range(100):
        reloading.write(f"auth_tokens = admin:{NEW}-{number}\n")
        await asyncio.sleep(0.02)
        if reloading.count("serving on") > 0:
            break
    await until_async(lambda: admits(reloading, f"{NEW}-{number}"), within_s=START_S)
    assert reloading.count("died") == 1


async def admits(reloading: Reloading, token: str) -> bool:
    return await reloading.codes(token) == {OK}


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


async def is_limited(url: str, topic: str) -> bool:
    async with open_api(url, NEW) as api:
        answer = await api.call("/limit", {"topic": topic})
        return answer.code == OK and bool(answer.data["declared"])


async def test_tokens_do_not_wait_for_a_store_that_is_away_and_sections_do(
    processes: Processes, topic: str
) -> None:
    store = processes.redis()
    server = processes.configured(f"auth_tokens = admin:{OLD}\n", store)
    server.start()
    reloading = Reloading(server, 1, "")
    store.kill()
    await reloading.change(f"auth_tokens = admin:{NEW}\n[limit {topic}]\nrate = 5\n")
    assert await reloading.codes(OLD) == {UNAUTHORIZED}
    store.start()

    await until_async(lambda: is_limited(server.url, topic))
    assert server.stop() == 0
    store.close()


@pytest.fixture
def pairs(tmp_path: Path) -> tuple[Pair, Pair]:
    return make(tmp_path, "old"), make(tmp_path, "new")


async def test_another_certificate_takes_the_place_of_the_first(
    processes: Processes, redis_server: StoreServer, pairs: tuple[Pair, Pair]
) -> None:
    old, new = pairs

    def named(pair: Pair) -> str:
        return f"tls_cert = {pair.cert}\ntls_key = {pair.key}\n"

    server = processes.configured(named(old), redis_server, tls=old.context())
    server.start()
    reloading = Reloading(server, 1, "")
    await reloading.change(named(new))
    async with open_api(server.url, tls=new.context()) as api:
        (await api.get("x")).ok()
    async with open_api(server.url, tls=old.context()) as api:
        with pytest.raises(aiohttp.ClientError):
            await api.get("x")
    reloading.write("language = en\n")
    await until(lambda: reloading.count("TLS would end; only a restart does that") > 0)
    async with open_api(server.url, tls=new.context()) as api:
        (await api.get("x")).ok()
    assert server.stop() == 0
