"""Opens the store as the settings say."""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from delayqueue.config.config import Config
from delayqueue.config.failpoint import VARIABLE, Failpoint
from delayqueue.store.bucket.bucket_store import BucketStore
from delayqueue.store.bucket.buckets import Buckets, Layout
from delayqueue.store.bucket.layout import check_layout
from delayqueue.store.scripts import Scripts
from delayqueue.store.servers.connect import connect
from delayqueue.store.servers.data_dir import place_of
from delayqueue.store.servers.durability import Durability
from delayqueue.store.servers.embedded import EmbeddedServer, running_in
from delayqueue.store.servers.shards import Shards
from delayqueue.store.store import Store


@asynccontextmanager
async def open_shards(
    config: Config, *, waits: bool = False
) -> AsyncIterator[tuple[Shards, str | None]]:
    """Connections to the store; with `redis.host = embedded` also the store itself, and its socket's path.

    Raises StartupError and StoreUnwell as connect() does.
    """
    async with AsyncExitStack() as stack:
        socket_path = None
        if config.embedded:
            server = await stack.enter_async_context(
                EmbeddedServer(place_of(config.data_dir), config.redis_binary)
            )
            socket_path = server.socket_path
        shards = await stack.enter_async_context(connect(config, socket_path, waits=waits))
        yield shards, socket_path


@asynccontextmanager
async def join_shards(config: Config) -> AsyncIterator[Shards]:
    """The store's connections, also next to a running server: its embedded store is shared."""
    socket_path = await running_in(place_of(config.data_dir)) if config.embedded else None
    async with connect(config, socket_path) if socket_path else _alone(config) as shards:
        yield shards


@asynccontextmanager
async def _alone(config: Config) -> AsyncIterator[Shards]:
    async with open_shards(config) as (shards, _):
        yield shards


async def open_store(shards: Shards, config: Config) -> Store:
    """The store with these settings.

    Raises StartupError if its data has another layout, StoreUnwell or Unavailable if it fails.
    """
    layout = await check_layout(shards, config)
    store = build_store(shards, config, layout)
    if not layout.fenced:
        await store.by_bucket.follow_layout()
    return store


def build_store(shards: Shards, config: Config, layout: Layout) -> Store:
    """The store with these settings, and this layout of its data."""
    place = os.environ.get(VARIABLE)
    return Store(
        BucketStore(
            shards,
            Buckets(config.bucket_name, config.queue_name, layout),
            scripts_of(config),
            Failpoint(place) if place else None,
            durability=Durability.of(config),
        )
    )


def scripts_of(config: Config) -> Scripts:
    """The scripts for the scheduler that the settings name."""
    return Scripts(config.scheduler, config.wheel_slots)
