"""Files that are read again when they change."""

import asyncio
import re
from functools import partial
from pathlib import Path
from threading import Event

import pytest

from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError
from delayqueue.server import reload
from delayqueue.server.file_watch import Watched, watch
from delayqueue.server.reload import collected
from delayqueue.server.reload_workers import Coordinator, Participant
from delayqueue.tasks import cancel_all
from tests.waiting import until


async def test_what_changed_before_the_first_look_is_read_as_well(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("as read at the start")
    read: list[str] = []
    file.write_text("changed since")
    watched = [Watched((file,), lambda: partial(read.append, file.read_text()))]
    watching = asyncio.create_task(watch(lambda: watched, asyncio.Lock()))
    await until(lambda: read == ["changed since"])
    file.write_text("changed once more")
    await until(lambda: read == ["changed since", "changed once more"])
    await cancel_all([watching])


async def test_reading_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "READ_S", 0.05)
    with pytest.raises(StartupError, match=re.escape("reading a takes longer than 0.05 s")):
        await reload.in_time("reading a", Event().wait)


async def test_what_goes_wrong_unexpectedly_ends_nothing(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("odd")
    failed: list[str] = []
    read: list[str] = []

    def fails_first() -> partial[None]:
        if file.read_text() == "odd":
            failed.append("odd")
            raise LookupError("a defect")
        return partial(read.append, file.read_text())

    watching = asyncio.create_task(
        watch(lambda: [Watched((file,), fails_first)], asyncio.Lock()), name="watch"
    )
    await until(lambda: failed == ["odd"])
    file.write_text("good again")
    await until(lambda: read == ["good again"])
    await cancel_all([watching])


def test_a_reload_that_fails_unexpectedly_has_its_reason() -> None:
    def fails() -> None:
        raise LookupError("a defect")

    with collected() as reasons:
        fails()
    assert reasons == ["LookupError('a defect')"]


async def test_a_reload_during_the_start_waits_for_a_worker_that_can_refuse_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reload, "read_again", lambda _: (Config(), []))
    coordinator, requested = Coordinator(first := Config()), asyncio.Event()
    requested.set()
    following = asyncio.create_task(reload.reload_on(requested, coordinator))
    with coordinator.line(1) as theirs:
        for _ in range(10):
            await asyncio.sleep(0)
        worker = Participant(theirs)
        worker.report_serving()
        proposed = await worker.proposed()
        assert not await worker.vote(proposed, ["no such handler"])
    assert coordinator.config is first
    await cancel_all([following])
