"""Settings that are read again: what is decided, and what processes are told of it."""

import asyncio
import os
import re
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from delayqueue.config.config import Config
from delayqueue.config.loading import load
from delayqueue.config.startup import StartupError, StoreUnwell
from delayqueue.domain.access import Grant
from delayqueue.errors import Text
from delayqueue.server import reload
from delayqueue.server.reload import Reloader, received
from delayqueue.server.settings import Settings
from delayqueue.tasks import cancel_all
from delayqueue.threads import Threads
from delayqueue.web.auth import all_grants
from delayqueue.web.tls import Certificate
from tests.certificates import make
from tests.waiting import PATIENCE_S, until

FIRST = f"admin:{'a' * 20}"
SECOND = f"admin:{'b' * 20}"
THIRD = f"admin:{'c' * 20}"


class Decider:
    """A reloader that runs, on a config that names a file of tokens."""

    def __init__(self, reloader: Reloader, config: Path, tokens: Path) -> None:
        self.reloader = reloader
        self.config = config
        self.tokens = tokens
        self.requested = asyncio.Event()
        self.checked: list[Config] = []
        self.refuses: Exception | None = None

    @property
    def token(self) -> str:
        return self.reloader.settings.grants[0].token

    async def check(self, config: Config) -> None:
        """What the store says."""
        self.checked.append(config)
        if self.refuses:
            raise self.refuses

    async def reload(self) -> None:
        """Ask for a reload, and wait until it is tried."""
        tried = len(self.checked)
        self.requested.set()
        await until(lambda: len(self.checked) > tried)


@pytest.fixture
async def decider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Decider]:
    monkeypatch.setattr(reload, "LOOK_S", 0.01)
    tokens, config = tmp_path / "tokens", tmp_path / "conf"
    tokens.write_text(FIRST)
    config.write_text(f"auth_tokens_file = {tokens}\n")
    reloader = await Reloader.begin(load(config, {}))
    decider = Decider(reloader, config, tokens)
    running = asyncio.create_task(reloader.run(decider.requested, decider.check))
    yield decider
    await cancel_all([running])


async def test_a_file_is_read_once_it_no_longer_changes_from_the_first_look_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(FIRST)
    reloader = await Reloader.begin(Config(auth_tokens_file=tokens))
    known = reloader.settings
    for half in (SECOND[:3], SECOND[:9], SECOND):
        tokens.write_text(half)
        await reloader._look()
    assert reloader.settings is known
    await reloader._look()
    found = reloader.settings
    assert (found.grants[0].token, found.source) == (SECOND.partition(":")[2], str(tokens))
    assert caplog.text == ""


async def test_tokens_and_a_certificate_that_change_at_once_are_both_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload, "LOOK_S", 0.01)
    tokens = tmp_path / "tokens"
    pair, new = make(tmp_path, "server"), make(tmp_path, "new")
    tokens.write_text(FIRST)
    config = Config(auth_tokens_file=tokens, tls_cert=pair.cert, tls_key=pair.key)
    reloader = await Reloader.begin(config)
    tokens.write_text(SECOND)  # one look finds these changes, since the first is yet to come
    new.cert.replace(pair.cert)
    new.key.replace(pair.key)
    running = asyncio.create_task(reloader.run(asyncio.Event(), nobody_asks))
    await until(lambda: reloader.settings.certificate == Certificate.of(config))
    assert reloader.settings.grants == tuple(all_grants(config))
    await cancel_all([running])


async def nobody_asks(_: Config) -> None:
    raise AssertionError


async def test_a_file_that_is_written_anew_with_the_same_is_no_news(
    decider: Decider, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, read = decider.reloader.settings, list[Config]()

    def counted(config: Config) -> list[Grant]:
        read.append(config)
        return all_grants(config)

    monkeypatch.setattr("delayqueue.server.settings.all_grants", counted)
    for number in range(3):
        decider.tokens.write_text(FIRST)
        os.utime(decider.tokens, (number, number))
        await until(lambda number=number: len(read) > number)  # type: ignore[misc]
    assert decider.reloader.settings is known


async def test_a_file_that_becomes_readable_later_is_read_then(
    decider: Decider, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def read_as_others(config: Config) -> list[Grant]:  # tests may run as root, who reads all
        if not decider.tokens.stat().st_mode & stat.S_IROTH:
            raise StartupError("Permission denied")
        return all_grants(config)

    monkeypatch.setattr("delayqueue.server.settings.all_grants", read_as_others)
    other = decider.tokens.with_name("other")
    other.write_text(SECOND)
    other.chmod(0o600)
    other.replace(decider.tokens)
    await until(lambda: "not reloaded, the previous settings stay: Permission" in caplog.text)
    decider.tokens.chmod(0o644)
    await until(lambda: decider.token == SECOND.partition(":")[2])


async def test_reading_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "READ_S", 0.05)
    with pytest.raises(StartupError, match=re.escape("reading a file takes longer than 0.05 s")):
        await reload.in_time(Threads("reload"), "reading a file", Event().wait)


async def test_a_file_system_that_hangs_delays_nothing_else(
    decider: Decider, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answers, asked, look_up = Event(), list[Path](), Path.stat

    def hangs(path: Path, **how: Any) -> os.stat_result:
        if path == decider.tokens and not answers.is_set():
            asked.append(path)
            answers.wait(PATIENCE_S)
        return look_up(path, **how)

    with monkeypatch.context() as hanging:
        hanging.setattr(Path, "stat", hangs)
        hanging.setattr(reload, "READ_S", 0.05)
        said = f"the previous settings stay: looking at {decider.tokens} takes longer than 0.05 s"
        await until(lambda: bool(asked) and said in caplog.text)
        await decider.reloader._look()
        hanging.setattr(reload, "READ_S", PATIENCE_S)
        await decider.reload()
        await until(lambda: decider.reloader.settings.revision == 1)
        assert len(asked) == 1  # threads do not become many
        decider.tokens.write_text(SECOND)
        answers.set()
        await until(lambda: decider.token == SECOND.partition(":")[2])


async def test_a_file_that_took_too_long_to_read_is_read_again(
    decider: Decider, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    answers = Event()

    def hangs(config: Config) -> list[Grant]:
        answers.wait(PATIENCE_S)
        return all_grants(config)

    monkeypatch.setattr("delayqueue.server.settings.all_grants", hangs)
    monkeypatch.setattr(reload, "READ_S", 0.05)
    decider.tokens.write_text(SECOND)
    said = f"the previous settings stay: reading {decider.tokens} takes longer than 0.05 s"
    await until(lambda: said in caplog.text)
    monkeypatch.setattr(reload, "READ_S", PATIENCE_S)
    answers.set()
    await until(lambda: decider.token == SECOND.partition(":")[2])


async def test_what_goes_wrong_unexpectedly_ends_nothing(
    decider: Decider, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: Any) -> None:
        raise LookupError("a defect")

    with monkeypatch.context() as broken:
        broken.setattr("delayqueue.server.settings.all_grants", fails)
        decider.tokens.write_text(SECOND)
        said = "not reloaded, the previous settings stay: LookupError('a defect')"
        await until(lambda: said in caplog.text)
        caplog.clear()
        decider.requested.set()
        await until(lambda: said in caplog.text)
    assert decider.token == FIRST.partition(":")[2]
    decider.tokens.write_text(THIRD)
    await until(lambda: decider.token == THIRD.partition(":")[2])


async def test_what_the_store_refuses_changes_nothing(
    decider: Decider, caplog: pytest.LogCaptureFixture
) -> None:
    known = decider.reloader.settings
    decider.refuses = StartupError("[schedule a]: taken", "[schedule b]: taken")
    await decider.reload()
    for name in "ab":
        said = f"not reloaded, the previous settings stay: [schedule {name}]: taken"
        await until(lambda said=said: said in caplog.text)  # type: ignore[misc]
    assert decider.reloader.settings is known


async def test_limits_in_a_circle_are_refused_though_the_store_is_away(
    decider: Decider, caplog: pytest.LogCaptureFixture
) -> None:
    decider.refuses = StoreUnwell("it is away", Text("", "it is away"))
    limits = "[limit a]\nburied_to = b\n[limit b]\nburied_to = a\n"
    decider.config.write_text(f"auth_tokens = {FIRST}\n{limits}")
    decider.requested.set()
    await until(lambda: "not reloaded, the previous settings stay: [limit " in caplog.text)
    assert decider.reloader.settings.revision == 0


async def test_tokens_do_not_wait_for_a_store_that_is_unwell_or_silent(
    decider: Decider, monkeypatch: pytest.MonkeyPatch
) -> None:
    decider.refuses = StoreUnwell("it is away", Text("", "it is away"))
    await decider.reload()
    await until(lambda: decider.reloader.settings.revision == 1)

    async def silent(_: Config) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(reload, "CHECK_S", 0.05)
    await decider.reloader._reload(silent)
    assert decider.reloader.settings.revision == 2


@asynccontextmanager
async def told(reloader: Reloader) -> AsyncIterator[tuple[list[Settings], asyncio.Event]]:
    """What a process is told, and an event that lets it read."""
    got: list[Settings] = []
    reads = asyncio.Event()
    with reloader.channel("a process") as (first, line):
        got.append(first)

        async def follow() -> None:
            await reads.wait()
            async for settings in received(line):
                got.append(settings)  # noqa: PERF401  # each as it comes

        following = asyncio.create_task(follow())
        yield got, reads
        await cancel_all([following])


async def test_a_process_is_told_what_takes_the_place_of_what_it_started_with(
    decider: Decider,
) -> None:
    async with told(decider.reloader) as (got, reads):
        await decider.reload()
        reads.set()
        await until(lambda: len(got) == 2)
        async with told(decider.reloader) as (later, reads_too):
            reads_too.set()
            decider.tokens.write_text(SECOND)
            await until(lambda: len(later) == 2 and len(got) == 3)
    assert [each.revision for each in got] == [0, 1, 1]
    assert later == got[1:]


async def test_a_process_that_is_stuck_is_told_the_last_of_many_and_delays_no_other(
    decider: Decider,
) -> None:
    async with told(decider.reloader) as (stuck, reads), told(decider.reloader) as (other, at_once):
        at_once.set()
        for number in range(40):
            decider.config.write_text(f"auth_tokens = {FIRST}{number}{'-' * 100_000}\n")
            await decider.reload()
            await until(lambda number=number: len(other) == number + 2)  # type: ignore[misc]
        reads.set()
        await until(lambda: stuck[-1] == other[-1])
    assert len(stuck) < 10


async def test_a_process_that_ends_leaves_nothing_behind_though_it_is_stuck(
    decider: Decider,
) -> None:
    tasks = asyncio.all_tasks()
    async with told(decider.reloader) as (_, reads):
        reads.set()
    await until(lambda: asyncio.all_tasks() <= tasks)
    async with told(decider.reloader):
        decider.config.write_text(f"auth_tokens = {FIRST}{'-' * 2_000_000}\n")
        await decider.reload()
        await asyncio.sleep(0.05)
    await until(lambda: asyncio.all_tasks() <= tasks)
