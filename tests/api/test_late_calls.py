"""A call that was answered 503 is never carried out later, over what was acknowledged since."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from faults.bed import restart
from faults.proxy import Proxy
from tests.api_client import UNAVAILABLE, Api, Envelope, open_api
from tests.processes import Processes, QueueServer, StoreServer
from tests.waiting import until_async

ANSWER_MS: Final = 300
OVER_S: Final = 2 * ANSWER_MS / 1000  # what docs/reliability.md promises, with these settings
SETTINGS: Final[dict[str, Any]] = {
    "redis.read_timeout": ANSWER_MS,
    "redis.write_timeout": ANSWER_MS,
}


@pytest.fixture(scope="module")
def store(processes: Processes) -> StoreServer:
    """A Redis that these tests may freeze."""
    return processes.redis()


@asynccontextmanager
async def through(proxy: Proxy, store: StoreServer, processes: Processes) -> AsyncIterator[Api]:
    """A client of a server that reaches the store through the proxy."""
    named = store.settings(store.new_database()) | SETTINGS | {"redis.host": proxy.address}
    server = processes.adopt(QueueServer("server", processes.home("server"), named))
    await restart(server)
    async with open_api(server.url) as api:
        yield api
    server.close()


async def acknowledged(request: Callable[[], Awaitable[Envelope]]) -> Any:
    """The data of the answer. Ask until it is a success: the machine may be busy."""
    while (answer := await request()).code == UNAVAILABLE:
        pass
    return answer.ok()


@pytest.mark.parametrize("verb", ["/delete", "/purge"])
async def test_a_late_end_does_not_end_a_job_that_was_pushed_again(
    verb: str, store: StoreServer, processes: Processes
) -> None:
    async with Proxy(store.port) as proxy, through(proxy, store, processes) as api:

        async def is_held() -> bool:
            """Not if a tick was held before: what follows goes on another connection after a tenth of a second."""
            await acknowledged(lambda: api.push(topic="t", id="x", body="before"))
            proxy.hold()
            asked = {"id": "x"} if verb == "/delete" else {"topic": "t"}
            return (await api.call(verb, asked)).code == UNAVAILABLE

        await until_async(is_held)
        await acknowledged(lambda: api.push(topic="t", id="x", body="after"))
        await asyncio.sleep(OVER_S)
        await proxy.let_go()
        assert (await acknowledged(lambda: api.get("x")))["body"] == "after"
