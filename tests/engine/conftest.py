"""Jobs that move between buckets, with both schedulers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.engine.moving import Installation
from tests.store.bucket import SCHEDULERS
from tests.store.conftest import connect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture(params=SCHEDULERS)
async def ours(request: pytest.FixtureRequest, valkey_server: Any) -> AsyncIterator[Installation]:
    async with connect(valkey_server) as redis:
        yield Installation(redis, request.param)
