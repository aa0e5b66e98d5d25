"""The store as the settings say: connecting to it, building it, and opening it for a server.

A store that is not well only delays that.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from delayqueue.config.config import Config
from delayqueue.config.failpoint import VARIABLE, Failpoint
from delayqueue.config.startup import StartupError, StoreUnwell
from delayqueue.errors import Text, Unavailable
from delayqueue.store.bucket import OUTDATED
from delayqueue.store.buckets import Buckets, Layout
from delayqueue.store.call import remove_old_functions
from delayqueue.store.connect import check_reachable, connect, where_is
from delayqueue.store.durability import Durability, check_durability
from delayqueue.store.embedded import check_is_there, embedded_store, place_of, running_in
from delayqueue.store.health import durability_warnings
from delayqueue.store.layout import (
    Stored,
    check_layout,
    claim_layout,
    layout_warnings,
    look_at_layout,
)
from delayqueue.store.scripts import Scripts
from delayqueue.store.servers import Servers
from delayqueue.store.store import Store
from delayqueue.tasks import at_most

log = logging.getLogger(__name__)

RETRY_S: Final = 1.0  # between two attempts to open the store
LOOK_S: Final = 1.0  # between two looks whether its layout is still the one that this process knows
FIRST_S: Final = 3.0  # that a start waits for the store, before clients are answered
NOT_OPEN: Final = Text("服务尚未打开存储", "the server has not opened it yet")
LOST_LAYOUT: Final = (
    "a bucket knows a later layout than bucket 1, which has lost it: "
    "run `delay-queue rebalance --buckets {}`"
)
UNTIL_THEN: Final = (
    "clients get code 6 (HTTP 503), /readyz says so, and all goes on by itself when it is well"
)


@asynccontextmanager
async def open_servers(
    config: Config, *, waits: bool = False
) -> AsyncIterator[tuple[Servers, str | None]]:
    """Connections to the store; with `redis.host = embedded` also the store itself, and its socket's path.

    Raises StartupError and StoreUnwell as connect() does.
    """
    async with AsyncExitStack() as stack:
        socket_path = None
        if config.embedded:
            store = embedded_store(place_of(config.data_dir), config.redis_binary)
            socket_path = await stack.enter_async_context(store)
        servers = await stack.enter_async_context(connect(config, socket_path, waits=waits))
        yield servers, socket_path


@asynccontextmanager
async def join_servers(config: Config, *, may_be_new: bool = False) -> AsyncIterator[Servers]:
    """The store's connections, also next to a running server: its embedded store is shared.

    Raises StartupError if there is no embedded store, unless it `may_be_new`; and as connect() does.
    """
    socket_path = await running_in(place_of(config.data_dir)) if config.embedded else None
    if socket_path:
        async with connect(config, socket_path) as servers:
            yield servers
    else:
        if config.embedded and not may_be_new:
            check_is_there(place_of(config.data_dir))
        async with open_servers(config) as (servers, _):
            yield servers


async def open_store(servers: Servers, config: Config) -> Store:
    """The store with these settings.

    Raises StartupError if its data has another layout, or its number of buckets is being changed; StoreUnwell if it
    fails.
    """
    stored = await check_layout(servers, config)
    if stored.change:
        raise StartupError(layout_warnings(stored, config)[0])
    return build_store(servers, config, stored.layout)


def build_store(servers: Servers, config: Config, layout: Layout) -> Store:
    """The store with these settings, and this layout of its data."""
    place = os.environ.get(VARIABLE)
    return Store(
        servers,
        Buckets(config.bucket_name, config.queue_name, layout),
        scripts_of(config),
        Failpoint(place) if place else None,
        durability=Durability.of(config),
    )


def scripts_of(config: Config) -> Scripts:
    """The scripts for the scheduler that the settings name."""
    return Scripts(config.scheduler, config.wheel_slots)


async def prepare_store(
    servers: Servers, config: Config, socket_path: str | None, *, is_first: bool
) -> Stored:
    """Check that the store keeps what the settings promise, and claim the layout of its data, which is returned.

    The first process of a server also removes old functions and logs warnings. Raises StartupError if a setting is
    wrong, StoreUnwell if the store cannot be used now.
    """
    await check_reachable(servers, config, socket_path)
    await check_durability(servers, config)
    before = await check_layout(servers, config)
    stored = await claim_layout(servers, config)
    if before.is_new and not socket_path:  # of an embedded one, this is said already
        log.info("new store: nothing is in it yet (%s)", where_is(config, None)[1])
    if is_first:
        await remove_old_functions(servers, scripts_of(config))
        for warning in layout_warnings(stored, config) + await durability_warnings(servers):
            log.warning("%s", warning)
    return stored


class StoreOpening:
    """Opens the store for this process, as soon as it is well: until then all calls raise Unavailable.

    It is closed again while the number of buckets is changed, and opened with the new one.
    """

    def __init__(
        self, store: Store, config: Config, socket_path: str | None, *, is_first: bool
    ) -> None:
        """`is_first`: for the first process of a server."""
        self._store = store
        self._config = config
        self._socket_path = socket_path
        self._is_first = is_first
        self._logged = ""  # what ails the store, as logged
        store.close(NOT_OPEN)

    async def attempt(self) -> bool:
        """Open the store if it is well. Raises StartupError if a setting is wrong."""
        store, config = self._store, self._config
        try:
            layout, change, _ = await prepare_store(
                store.servers, config, self._socket_path, is_first=self._is_first
            )
            if change:
                return self._wait(
                    change.text, f"the number of buckets is being changed to {change.size}"
                )
            if layout.generation <= store.refused_generation:
                return self._wait(OUTDATED, LOST_LAYOUT.format(layout.size))
        except StoreUnwell as error:
            return self._wait(error.text, "; ".join(error.lines(config)))
        except Unavailable:  # and the log says why
            return False
        store.buckets.adopt(layout)
        store.open()
        if self._logged:
            log.info("the store is well, and open; its data has %d buckets", layout.size)
        self._logged = ""
        return True

    def _wait(self, why: Text, logged: str) -> bool:
        """Try again later; false, for attempt()."""
        self._store.close(why)
        if logged != self._logged:
            log.warning("%s; until then, %s", logged, UNTIL_THEN)
        self._logged = logged
        return False

    async def begin(self) -> None:
        """Try it once, but not for long. Raises StartupError if a setting is wrong."""
        async with at_most(FIRST_S):
            await self.attempt()

    async def run(self) -> None:
        """Open the store whenever it is closed, and close it when its layout changes, until cancelled."""
        store = self._store
        while True:
            if store.closed and not await self.attempt():
                await asyncio.sleep(RETRY_S)
                continue
            await asyncio.sleep(LOOK_S)
            if store.closed is None:
                await self._look()

    async def _look(self) -> None:
        """Close the store if its layout is another one by now."""
        store = self._store
        stored = await look_at_layout(store.servers, self._config, store.buckets.layout)
        if stored and (stored.change or stored.layout != store.buckets.layout):
            store.close(stored.change.text if stored.change else OUTDATED)
