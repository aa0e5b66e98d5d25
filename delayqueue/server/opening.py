"""What a server does in the store before it uses it. A store that is not well only delays this."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from delayqueue.config.config import Config
from delayqueue.config.startup import StoreUnwell
from delayqueue.errors import Text, Unavailable
from delayqueue.server.stores import scripts_of
from delayqueue.store.bucket.bucket_store import BucketStore
from delayqueue.store.bucket.buckets import Layout
from delayqueue.store.bucket.layout import claim_layout, keep_layout, layout_warnings
from delayqueue.store.servers.connect import check_reachable
from delayqueue.store.servers.durability import check_durability
from delayqueue.store.servers.functions import remove_old_functions
from delayqueue.store.servers.health import durability_warnings
from delayqueue.store.servers.shards import Shards

log = logging.getLogger(__name__)

RETRY_S: Final = 1.0
FIRST_S: Final = 3.0  # that a start waits for the store, before clients are answered
NOT_OPEN: Final = Text("服务尚未打开存储", "the server has not opened it yet")
UNTIL_THEN: Final = (
    "clients get code 6 (HTTP 503), /readyz says so, and all goes on by itself when it is well"
)


async def prepare_store(
    shards: Shards, config: Config, socket_path: str | None, *, is_first: bool = True
) -> Layout:
    """Check that the store keeps what the settings promise, and claim the layout of its data, which is returned.

    The first process of a server also removes old functions and logs warnings. Raises StartupError if a setting is
    wrong, StoreUnwell if the store cannot be used now.
    """
    await check_reachable(shards, config, socket_path)
    await check_durability(shards, config)
    layout = await claim_layout(shards, config)
    if is_first:
        await remove_old_functions(shards, scripts_of(config))
        for warning in layout_warnings(layout, config) + await durability_warnings(shards):
            log.warning("%s", warning)
    return layout


class Opening:
    """Opens the store for this process, as soon as it is well: until then all calls raise Unavailable."""

    def __init__(
        self, store: BucketStore, config: Config, prepare: Callable[[], Awaitable[Layout]]
    ) -> None:
        """`prepare` returns the layout in force, as prepare_store() does."""
        self._store = store
        self._config = config
        self._prepare = prepare
        self._said = ""  # what ails the store, as logged
        store.caller.close(NOT_OPEN)

    async def attempt(self) -> bool:
        """Open the store if it is well. Raises StartupError if a setting is wrong."""
        try:
            layout = await self._prepare()
            self._store.buckets.adopt(layout)
            if not layout.fenced:
                await self._store.follow_layout()
        except StoreUnwell as error:
            self._store.caller.close(error.text)
            if str(error) != self._said:
                why = "; ".join(error.lines(self._config))
                log.warning("%s; until then, %s", why, UNTIL_THEN)
            self._said = str(error)
            return False
        except Unavailable:  # and the log says why
            return False
        self._store.caller.open()
        if self._said:
            log.info("the store is well, and open")
        return True

    async def begin(self) -> None:
        """Try it once, but not for long. Raises StartupError if a setting is wrong."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_S):
                await self.attempt()

    async def run(self) -> None:
        """Open the store unless it is open, then keep the layout, until cancelled."""
        store = self._store
        while True:
            if not store.caller.is_closed or await self.attempt():
                break
            await asyncio.sleep(RETRY_S)
        await keep_layout(store.shards, self._config, store.buckets, store.follow_layout)
