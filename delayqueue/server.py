"""The composition root: builds everything, owns every task, stops everything."""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web
from redis.asyncio import Redis

from delayqueue.config import Config, StartupError
from delayqueue.engine.queue import DelayQueue
from delayqueue.store.connect import connect, durability_warnings
from delayqueue.store.embedded import EmbeddedServer
from delayqueue.store.keys import BucketKeys
from delayqueue.store.layout import check_layout
from delayqueue.store.store import Store
from delayqueue.web.api import Api
from delayqueue.web.app import build_app
from delayqueue.web.envelope import Speaker

log = logging.getLogger(__name__)

KEEPALIVE_S = 75.0  # of an idle connection; aiohttp's own default is over an hour
SHUTDOWN_S = 4.0  # for requests in flight; aiohttp waits for it twice


async def serve(config: Config) -> None:
    """Serve until SIGTERM or SIGINT. StartupError where the server cannot start; every other error is a defect."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop.set)
    async with AsyncExitStack() as stack:
        redis = await stack.enter_async_context(open_redis(config))
        await check_layout(redis, config)
        for warning in await durability_warnings(redis):
            log.warning("%s", warning)
        queue = DelayQueue(Store(redis, buckets(config)))
        api = Api(
            queue, Speaker(config.language), config.max_body_bytes, config.queue_block_timeout_s
        )
        await stack.enter_async_context(running(queue, stop))
        await stack.enter_async_context(listening(build_app(api, config), config))
        stack.push_async_callback(
            queue.close
        )  # first of all: polls are answered, so requests can end
        log.info("serving on %s", config.bind_address)
        await stop.wait()
        log.info("stopping")


@asynccontextmanager
async def open_redis(config: Config) -> AsyncIterator[Redis]:
    """The store's connection pool; with `redis.host = embedded` the store itself too."""
    async with AsyncExitStack() as stack:
        socket_path = None
        if config.embedded:
            server = await stack.enter_async_context(
                EmbeddedServer(config.data_dir, config.redis_binary)
            )
            socket_path = server.socket_path
        yield await stack.enter_async_context(connect(config, socket_path))


def buckets(config: Config) -> list[BucketKeys]:
    """The names of all buckets."""
    return [
        BucketKeys.of(number, config.bucket_name, config.queue_name)
        for number in range(1, config.bucket_size + 1)
    ]


@asynccontextmanager
async def running(queue: DelayQueue, stop: asyncio.Event) -> AsyncIterator[None]:
    """Run the queue's loops; one that dies stops the server, loudly."""

    def ended(task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            log.critical("%s died", task.get_name(), exc_info=task.exception())
            stop.set()

    tasks = [asyncio.create_task(run(), name=name) for name, run in queue.background().items()]
    for task in tasks:
        task.add_done_callback(ended)
    try:
        yield
    finally:
        await _cancel(tasks)


async def _cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel until all have ended: a cancellation can get lost while redis-py connects (seen when a port is taken)."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=0.2)


@asynccontextmanager
async def listening(app: web.Application, config: Config) -> AsyncIterator[None]:
    """Listen on the configured address."""
    runner = web.AppRunner(
        app,
        access_log=None,
        handle_signals=False,
        handler_cancellation=True,  # a client that leaves while it waits takes no job
        keepalive_timeout=KEEPALIVE_S,
        shutdown_timeout=SHUTDOWN_S,
    )
    await runner.setup()
    try:
        try:
            await web.TCPSite(
                runner, config.bind_address.host, config.bind_address.port, backlog=4096
            ).start()
        except OSError as error:
            raise StartupError(
                f"bind_address = {config.bind_address}: {error.strerror}; "
                "stop what listens there or choose another port"
            ) from error
        yield
    finally:
        await runner.cleanup()
