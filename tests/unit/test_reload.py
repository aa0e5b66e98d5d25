"""Files that are read again when they change."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from delayqueue.server.reload import Watched, watch
from delayqueue.tasks import cancel_all
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path


async def test_what_changed_before_the_first_look_is_read_as_well(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("as read at the start")
    read: list[str] = []
    file.write_text("changed since")
    watched = [Watched((file,), lambda: read.append(file.read_text()))]
    watching = asyncio.create_task(watch(lambda: watched))
    await until(lambda: read == ["changed since"])
    file.write_text("changed once more")
    await until(lambda: read == ["changed since", "changed once more"])
    await cancel_all([watching])
