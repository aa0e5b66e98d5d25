"""What a server says of its store, from what it sees every two seconds."""

from typing import Any

import pytest

from delayqueue.store import watch
from delayqueue.store.health import Look
from tests.engine.moving import Installation

EVICTS: dict[str, Any] = {"maxmemory": 1, "maxmemory_policy": "allkeys-lru"}
SILENT = Look({"maxmemory": 0}, None)


def dropped(number: int) -> Look:
    return Look(EVICTS | {"evicted_keys": number}, None)


@pytest.mark.parametrize("outage", [[], [SILENT, SILENT], [dropped(31), SILENT]])
async def test_keys_that_were_dropped_before_an_outage_are_not_said_again(
    ours: Installation,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    outage: list[Look],
) -> None:
    before, after = [dropped(31), dropped(5)], [dropped(31), dropped(7)]
    looks = [before, outage, before, after]

    async def look_at(*_: Any) -> list[Look]:
        return looks.pop(0)

    monkeypatch.setattr(watch, "look_at", look_at)
    store = ours.server()
    for _ in range(3):
        await store.watch.look()
    assert "has dropped" not in caplog.text
    await store.watch.look()
    assert "the store has dropped 2 keys for room" in caplog.text
