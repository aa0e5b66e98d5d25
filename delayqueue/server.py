"""The composition root: builds everything, owns every task, stops everything."""

import asyncio
import errno
import logging
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, MutableSequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import uvloop

from delayqueue.config import Config, StartupError
from delayqueue.delivery.addresses import AddressGuard
from delayqueue.delivery.callables import PythonHandlers, load_all
from delayqueue.delivery.callers import Callers
from delayqueue.delivery.subscribers import Delivery
from delayqueue.delivery.webhook import Webhooks
from delayqueue.engine.queue import DelayQueue
from delayqueue.failpoint import VARIABLE, Failpoint
from delayqueue.log import set_up
from delayqueue.notify import START_S, Service
from delayqueue.peers import Peers
from delayqueue.reload import Watched, watch
from delayqueue.sections import Sections
from delayqueue.store.buckets import Buckets
from delayqueue.store.connect import connect
from delayqueue.store.durability import FSYNC, Fsync, check_durability
from delayqueue.store.embedded import EmbeddedServer, running_in
from delayqueue.store.health import durability_warnings
from delayqueue.store.layout import check_layout, claim_layout, layout_warnings
from delayqueue.store.scheduler import Scheduler
from delayqueue.store.shards import Shards
from delayqueue.store.store import Store
from delayqueue.tasks import cancel_all
from delayqueue.web.api import Api
from delayqueue.web.auth import Guard
from delayqueue.web.envelope import Speaker
from delayqueue.web.front import build_front
from delayqueue.web.listening import listening, unusable
from delayqueue.web.tls import Tls
from delayqueue.workers import claim, shared_pulses, supervise

log = logging.getLogger(__name__)

Loop = Callable[[], Coroutine[None, None, None]]

# A request holds at most so many times max_body: a batch of jobs, or one body written in JSON's escapes.
BODIES_PER_REQUEST = 8
PULSE_S = 0.5  # between two looks at whether this process works


async def serve(config: Config) -> None:
    """Serve until SIGTERM or SIGINT. StartupError where the server cannot start; every other error is a defect."""
    stop = _stopped_by_signals()
    async with open_shards(config) as (shards, socket_path):
        await check_durability(shards, config)
        layout = await claim_layout(shards, config)
        for warning in layout_warnings(layout, config) + await durability_warnings(shards):
            log.warning("%s", warning)
        pulses = [0.0] if config.workers == 1 else shared_pulses(config.workers)
        async with Service(os.environ, os.getpid()).telling(pulses, stop):
            if config.workers == 1:
                await _serve_here(config, shards, stop, pulses)
            else:
                _claim(config)
                with _meeting_place() as peers:
                    work = partial(_worker, config, socket_path, Path(peers), pulses)
                    await supervise(config.workers, work, stop)


def _meeting_place() -> TemporaryDirectory[str]:
    """Where the workers tell each other their figures."""
    try:
        return TemporaryDirectory(prefix="delayqueue-", ignore_cleanup_errors=True)
    except OSError as error:
        raise StartupError(f"{error.strerror}: set TMPDIR to one that can be written") from None


async def _serve_here(
    config: Config,
    shards: Shards,
    stop: asyncio.Event,
    pulses: MutableSequence[float],
    number: int = 1,
    folder: Path | None = None,
) -> None:
    """Serve as worker `number` of those that share `folder` and `pulses`; None = alone."""
    queue = DelayQueue(await open_store(shards, config), config.max_polls, _name(config, number))
    sections = config.sections or Sections()
    handlers = PythonHandlers(load_all(sections.subscribers))
    addresses = AddressGuard(config.webhook_allow)
    addresses.check_declared(sections.subscribers)
    if config.sections is not None:
        await queue.subscribers.declare(one.subscriber for one in sections.subscribers)
        await queue.schedules.declare(sections.schedules)
        await queue.topics.declare_limits(sections.limits)
    peers = Peers(folder, number, queue.metrics.snapshot)
    guard, tls = Guard.of(config), Tls.of(config)
    api = Api(
        queue,
        Speaker(config.language),
        config.max_body_bytes,
        config.queue_block_timeout_s,
        peers,
        config.metrics_topics,
        config.shown(),
        guard,
        addresses.check_url,
        config.strict,
    )
    front = build_front(api, config)
    context, shared = tls.context if tls else None, folder is not None
    async with AsyncExitStack() as stack:
        webhooks = await stack.enter_async_context(Webhooks.open(config.webhook_allow))
        delivery = Delivery(queue, Callers(webhooks, handlers))
        loops = queue.background() | {
            "shards": shards.watch,
            "reload": partial(watch, watched(config, guard, tls)),
            "delivery": delivery.run,
        }
        for lifetime in (
            peers.answering(),
            aclosing(queue),  # last of all, what delivery has given back arrives
            running(loops, stop),
            aclosing(delivery),
            listening(
                front,
                config.bind_address,
                context,
                most_bytes=BODIES_PER_REQUEST * config.max_body_bytes,
                reuse_port=shared,
            ),
            running({"pulse": partial(_pulse, queue, pulses, number)}, stop),
            aclosing(queue),  # first of all polls are answered, so that requests can end
        ):
            await stack.enter_async_context(lifetime)
        log.info("serving on %s%s", config.bind_address, " with TLS" if tls else "")
        await stop.wait()
        log.info("stopping")
        delivery.stop()


async def _pulse(queue: DelayQueue, pulses: MutableSequence[float], number: int) -> None:
    """Show that this process works: with a timer that hangs its pulse grows old."""
    while True:
        if (age_s := queue.try_age_s()) is not None:
            pulses[number - 1] = time.monotonic() - age_s
        await asyncio.sleep(PULSE_S if age_s is not None else START_S)


def _worker(
    config: Config,
    socket_path: str | None,
    folder: Path,
    pulses: MutableSequence[float],
    number: int,
) -> None:
    """One of several processes on the port."""

    async def work() -> None:
        stop = _stopped_by_signals()
        async with connect(config, socket_path) as shards:
            await _serve_here(config, shards, stop, pulses, number, folder)

    set_up(config.log_level, config.log_format)
    uvloop.run(work())


def _name(config: Config, number: int) -> str:
    """What the other processes know this one by."""
    return f"{socket.gethostname()}:{config.bind_address.port} #{number}"


def _stopped_by_signals() -> asyncio.Event:
    stop = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)
    return stop


@asynccontextmanager
async def open_shards(config: Config) -> AsyncIterator[tuple[Shards, str | None]]:
    """The way to the store; with `redis.host = embedded` the store itself too, and its socket's path."""
    async with AsyncExitStack() as stack:
        socket_path = None
        if config.embedded:
            server = await stack.enter_async_context(
                EmbeddedServer(config.data_dir, config.redis_binary)
            )
            socket_path = server.socket_path
        yield await stack.enter_async_context(connect(config, socket_path)), socket_path


@asynccontextmanager
async def join_shards(config: Config) -> AsyncIterator[Shards]:
    """The store's connection pool, also beside a running server: its embedded store is used along with it."""
    socket_path = await running_in(config.data_dir.absolute()) if config.embedded else None
    async with connect(config, socket_path) if socket_path else _alone(config) as shards:
        yield shards


@asynccontextmanager
async def _alone(config: Config) -> AsyncIterator[Shards]:
    async with open_shards(config) as (shards, _):
        yield shards


async def open_store(shards: Shards, config: Config) -> Store:
    """The store of these settings. StartupError where its data is laid out otherwise, Unavailable where it fails."""
    place = os.environ.get(VARIABLE)
    layout = await check_layout(shards, config)
    store = Store(
        shards,
        Buckets(config.bucket_name, config.queue_name, layout),
        Scheduler(config.scheduler, config.wheel_slots),
        Failpoint(place) if place else None,
        fsync=Fsync() if config.durability == FSYNC else None,
    )
    if not layout.fenced:
        await store.follow_layout()
    return store


def watched(config: Config, guard: Guard, tls: Tls | None) -> list[Watched]:
    """The files that are read again when they change."""
    tokens = config.auth_tokens_file
    return [
        *([Watched((tokens,), guard.reload)] if tokens else ()),
        *([Watched(tls.files, tls.reload)] if tls else ()),
    ]


class LoopDied(Exception):
    """A loop that the server needs has ended: why stands in the log."""


@asynccontextmanager
async def running(loops: Mapping[str, Loop], stop: asyncio.Event) -> AsyncIterator[None]:
    """Run the loops; one that dies stops the server, loudly. At the end raises LoopDied if one did."""
    told_to_end: set[asyncio.Task[None]] = set()
    died: list[str] = []

    def ended(task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is None and task in told_to_end:
            return
        log.critical("%s died", task.get_name(), exc_info=error)
        died.append(task.get_name())
        stop.set()

    tasks = [asyncio.create_task(run(), name=name) for name, run in loops.items()]
    for task in tasks:
        task.add_done_callback(ended)
    try:
        yield
    finally:
        told_to_end.update(task for task in tasks if not task.done())
        await cancel_all(tasks)
    if died:
        raise LoopDied(", ".join(died))


def check_address(config: Config) -> None:
    """StartupError where nobody could listen. That somebody does is nothing wrong: this server may be running."""
    try:
        claim(config.bind_address)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise unusable(config.bind_address, error) from None


def _claim(config: Config) -> None:
    try:
        claim(config.bind_address)
    except OSError as error:
        raise unusable(config.bind_address, error) from error
