"""Jobs that move between buckets, with both schedulers."""

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from delayqueue.engine import bucket_poller, polls
from tests.engine.moving import Installation
from tests.store.bucket import SCHEDULERS
from tests.store.conftest import connect

PATIENCE_S: Final = 60.0


@pytest.fixture(params=SCHEDULERS)
async def ours(
    request: pytest.FixtureRequest, valkey_server: Any, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Installation]:
    # so that a poll that does not wait finds what is ready, however slow the store is, and none is on its way back
    monkeypatch.setattr(polls, "LOOK_S", PATIENCE_S)
    monkeypatch.setattr(bucket_poller, "SLOW_S", PATIENCE_S)
    async with connect(valkey_server) as redis:
        yield Installation(redis, request.param)
