"""What was recorded of both ways in (recorded.py) is answered by the same bytes today."""

import asyncio
from typing import Final

import pytest

from tests.processes import Processes, StoreServer

from .recorded import AT_ONCE, QUIET_S, WAYS, Dialogue, ask, read, server

QUIETS_S: Final = QUIET_S, QUIET_S, 1.0, 5.0  # a busy machine may be slow to answer


@pytest.mark.parametrize("way", WAYS)
async def test_what_was_recorded_is_answered_by_the_same_bytes(
    way: str, processes: Processes, redis_server: StoreServer
) -> None:
    port, free = server(processes, redis_server, way).port, asyncio.Semaphore(AT_ONCE)

    async def difference(dialogue: Dialogue) -> tuple[Dialogue, bytes] | None:
        async with free:
            for quiet_s in QUIETS_S:
                if (got := await ask(port, dialogue.sent, quiet_s)) == dialogue.got:
                    return None
            return dialogue, got

    found = await asyncio.gather(*map(difference, read()))
    assert [each for each in found if each is not None] == []
