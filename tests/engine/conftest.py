"""Jobs that move between buckets, with both schedulers."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.engine.moving import Installation
from tests.store.bucket import SCHEDULERS
from tests.store.conftest import connect


@pytest.fixture(params=SCHEDULERS)
async def ours(request: pytest.FixtureRequest, valkey_server: Any) -> AsyncIterator[Installation]:
    async with connect(valkey_server) as redis:
        yield Installation(redis, request.param)
