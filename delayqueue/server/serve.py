"""The composition root: builds everything, owns every task, stops everything."""

import asyncio
import errno
import gc
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableSequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import uvloop

from delayqueue.beanstalk.listening import listening as beanstalk_listening
from delayqueue.config.build import build
from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError, StoreUnwell
from delayqueue.config.values import Address
from delayqueue.delivery.addresses import AddressGuard
from delayqueue.delivery.call_guard import CallGuard
from delayqueue.delivery.callables import PythonHandlers
from delayqueue.delivery.caller import SubscriberCaller
from delayqueue.delivery.consumers import TopicConsumers
from delayqueue.delivery.job_calls import JobCalls
from delayqueue.engine.queue import DelayQueue
from delayqueue.log import set_up
from delayqueue.metrics import CONNECTIONS, UNANSWERED_BYTES, Metrics
from delayqueue.net.connected import Connected
from delayqueue.net.limits import ClientLimits
from delayqueue.net.listener import unusable
from delayqueue.net.unanswered import LONGEST_TOGETHER, Unanswered
from delayqueue.net.unread import Unread
from delayqueue.server.file_watch import watch
from delayqueue.server.loops import running
from delayqueue.server.open_files import (
    most_connections,
    raise_limit,
    warn_if_none_is_left,
    warn_of_limit,
)
from delayqueue.server.peers import Peers
from delayqueue.server.processes import claim, let_supervisor_reload, shared_pulses, supervise
from delayqueue.server.reload import reload_on
from delayqueue.server.reload_workers import Coordinator, Participant
from delayqueue.server.settings import Settings
from delayqueue.server.store import FIRST_S, StoreOpening, build_store, open_shards, prepare_store
from delayqueue.server.systemd import START_S, Service
from delayqueue.server.tracing import Traced, tracing
from delayqueue.store.bucket.buckets import Layout
from delayqueue.store.bucket.layout import Stored
from delayqueue.store.servers.connect import connect
from delayqueue.store.servers.shards import Shards
from delayqueue.tasks import left_when
from delayqueue.threads import not_waited_for
from delayqueue.web.listening import listening
from delayqueue.web.metrics import process_figures

log = logging.getLogger(__name__)

# A request holds at most this many times max_body: a batch of jobs, or one body in JSON escapes.
BODIES_PER_REQUEST = 8
PULSE_S = 0.5  # between two checks of whether this process works
TURN_S = (
    0.0005  # of another thread, before the server's loop has its own; CPython's default is 5 ms
)


class Signals(NamedTuple):
    """Signals to this process."""

    stop: asyncio.Event  # SIGTERM, SIGINT
    reload: asyncio.Event  # SIGHUP


async def serve(config: Config) -> None:
    """Serve until SIGTERM or SIGINT; reload the settings on SIGHUP.

    Raises StartupError if the server cannot start; every other error is a bug.
    """
    signals = _signals()
    # before anything is started that would have to be stopped again
    check_addresses(config, may_be_taken=False)
    raise_limit()
    async with AsyncExitStack() as stack:
        async with left_when(signals.stop):  # an embedded store may load for minutes
            shards, socket_path = await stack.enter_async_context(open_shards(config, waits=True))
        if signals.stop.is_set():
            return
        pulses = [0.0] if config.workers == 1 else shared_pulses(config.workers)
        async with Service(os.environ, os.getpid()).reporting(pulses, signals.stop):
            if config.workers == 1:
                alone = _Place(partial(prepare_store, shards, config, socket_path))
                await _serve_here(config, shards, signals, pulses, alone)
            else:
                # wrong settings end the start here; worker 1 logs everything else
                with suppress(StoreUnwell, TimeoutError):
                    async with asyncio.timeout(FIRST_S):
                        await prepare_store(shards, config, socket_path, is_first=False)
                coordinator = Coordinator(config)
                with _meeting_place() as peers:
                    prepare = partial(_prepared, coordinator, socket_path, Path(peers), pulses)
                    async with running(
                        {"settings": partial(reload_on, signals.reload, coordinator)}, signals.stop
                    ):
                        await supervise(config.workers, prepare, signals.stop)


def _meeting_place() -> TemporaryDirectory[str]:
    """The directory through which workers exchange their figures."""
    try:
        return TemporaryDirectory(prefix="delayqueue-", ignore_cleanup_errors=True)
    except OSError as error:
        raise StartupError(f"{error.strerror}: set TMPDIR to a writable one") from None


class _Place(NamedTuple):
    """Which of several processes this one is: its number, where they exchange figures, its line to the supervisor."""

    prepare: Callable[[], Awaitable[Stored]]  # for StoreOpening
    number: int = 1
    folder: Path | None = None
    participant: Participant | None = None


async def _serve_here(
    config: Config,
    shards: Shards,
    signals: Signals,
    pulses: MutableSequence[float],
    place: _Place,
) -> None:
    """Serve as one of those that share `pulses`."""
    prepare, number, folder, participant = place
    store = build_store(shards, config, Layout(config.bucket_size))
    opening = StoreOpening(store.by_bucket, config, prepare)
    await opening.begin()
    queue = DelayQueue(
        store,
        config.max_polls,
        _name(config, number),
        buried_retain_ms=config.buried_retain_s and config.buried_retain_s * 1000,
        keeps_history=config.history,
    )
    peers = Peers(folder, number, lambda: queue.metrics.snapshot() | process_figures())
    limits = _limits(config, queue.metrics)
    async with AsyncExitStack() as stack:
        traced = await stack.enter_async_context(tracing(config, _name(config, number)))
        webhooks = await stack.enter_async_context(
            traced.webhooks(AddressGuard(config.webhook_allow))
        )
        settings = Settings(config, queue, peers, webhooks, traced.front)
        # a replacement for a dead worker does not declare again: other servers have moved on since
        if not pulses[number - 1]:
            await settings.declare()
        tune_interpreter()
        context, shared = settings.tls.context if settings.tls else None, folder is not None
        consumers = TopicConsumers(
            queue, SubscriberCaller(webhooks, PythonHandlers(settings.handlers))
        )
        calls = await stack.enter_async_context(_calls(config, queue, traced))
        loops = queue.background() | {
            "shards": shards.watch,
            "store": opening.run,
            "reload": partial(watch, settings.watched, settings.changing),
            "settings": partial(settings.reload_with, participant)
            if participant
            else partial(reload_on, signals.reload, settings),
            "sections": settings.keep_declared,
            "delivery": consumers.run,
        }
        if calls:
            loops["calls"] = calls.run
        if replicas := store.replicas:
            loops["replicas"] = partial(replicas.watch, shards)
        for lifetime in (
            peers.answering(),
            aclosing(queue.history),
            aclosing(queue),  # last, so that what delivery has put back arrives
            running(loops, signals.stop),
            aclosing(consumers),
            *([aclosing(calls)] if calls else ()),
            # before HTTP, whose /readyz says that all is open
            _beanstalk(config, settings, limits, reuse_port=shared),
            listening(
                settings,
                config.bind_address,
                context,
                limits=limits,
                most_bytes=_most_bytes(config),
                reuse_port=shared,
            ),
            running({"pulse": partial(_pulse, queue, pulses, number)}, signals.stop),
            aclosing(queue),  # first, so that polls are answered and requests can end
            settings.beanstalk.draining(),
        ):
            await stack.enter_async_context(lifetime)
        # a process that dies from now on is replaced by one that does not declare
        pulses[number - 1] = time.monotonic()
        if number == 1:
            warn_of_limit(config.max_connections)
            log.info("this is delay-queue %s", build())
        log.info("serving on %s%s", config.bind_address, settings.terms)
        await signals.stop.wait()
        log.info("stopping")
        consumers.stop()
        if calls:
            calls.stop()


@asynccontextmanager
async def _calls(
    config: Config, queue: DelayQueue, traced: Traced
) -> AsyncIterator[JobCalls | None]:
    """What makes the calls of jobs; None if the config forbids them."""
    if not config.calls:
        yield None
        return
    guard = CallGuard(config.call_allow)
    async with traced.webhooks(guard.addresses) as webhooks:
        yield JobCalls(
            queue,
            webhooks,
            guard,
            secrets=dict(config.call_secret),
            per_host=config.call_concurrency,
        )


@asynccontextmanager
async def _beanstalk(
    config: Config, settings: Settings, limits: ClientLimits, *, reuse_port: bool
) -> AsyncIterator[None]:
    """Serve clients of beanstalkd, too, if the config has an address for them."""
    if config.beanstalk_address is None:
        yield
        return
    tls = settings.tls.context if settings.tls and config.beanstalk_tls else None
    async with beanstalk_listening(
        settings.beanstalk, config.beanstalk_address, tls, limits=limits, reuse_port=reuse_port
    ):
        log.info("serving beanstalkd clients on %s", config.beanstalk_address)
        yield


def _limits(config: Config, metrics: Metrics) -> ClientLimits:
    """What all clients of this process may take together; what they take is shown in `metrics`."""
    connected = Connected(most_connections(config.max_connections), metrics)
    unanswered = Unanswered(LONGEST_TOGETHER * _most_bytes(config), metrics)
    metrics.show(CONNECTIONS, lambda: connected.count)
    metrics.show(UNANSWERED_BYTES, lambda: unanswered.bytes)
    return ClientLimits(connected, unanswered, Unread())


def _most_bytes(config: Config) -> int:
    """How long a request may be."""
    return BODIES_PER_REQUEST * config.max_body_bytes


def tune_interpreter() -> None:
    """Set what is one for the whole process.

    Permanent objects are hidden from the garbage collector: each time it went through them, requests waited for 40 ms.
    While another thread is busy, as the one of webhooks, the server's has its turn after TURN_S.
    """
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(TURN_S)


async def _pulse(queue: DelayQueue, pulses: MutableSequence[float], number: int) -> None:
    """Show that this process works: if a timer hangs, its pulse gets old. And that it can accept connections."""
    while True:
        warn_if_none_is_left()
        if (age_s := queue.timers.try_age_s()) is not None:
            pulses[number - 1] = time.monotonic() - age_s
        await asyncio.sleep(PULSE_S if age_s is not None else START_S)


def _work(
    config: Config,
    socket_path: str | None,
    folder: Path,
    pulses: MutableSequence[float],
    number: int,
    line: Connection,
) -> None:
    """The work of one of several processes on the port."""
    set_up(config.log_level, config.log_format)

    async def work() -> None:
        signals = _signals()
        let_supervisor_reload()
        async with connect(config, socket_path, waits=True) as shards:
            prepare = partial(prepare_store, shards, config, socket_path, is_first=number == 1)
            place = _Place(prepare, number, folder, Participant(line))
            await _serve_here(config, shards, signals, pulses, place)

    with not_waited_for():
        uvloop.run(work())


@contextmanager
def _prepared(
    coordinator: Coordinator,
    socket_path: str | None,
    folder: Path,
    pulses: MutableSequence[float],
    number: int,
) -> Iterator[Callable[[], None]]:
    """The work of process `number`, which reloads with the others until the block ends."""
    with coordinator.line(number) as line:
        yield partial(_work, coordinator.config, socket_path, folder, pulses, number, line)


def _name(config: Config, number: int) -> str:
    """The name by which other processes know this one."""
    return f"{socket.gethostname()}:{config.bind_address.port} #{number}"


def _signals() -> Signals:
    signals = Signals(asyncio.Event(), asyncio.Event())
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, signals.stop.set)
    loop.add_signal_handler(signal.SIGINT, signals.stop.set)
    loop.add_signal_handler(signal.SIGHUP, signals.reload.set)
    return signals


def check_addresses(config: Config, *, may_be_taken: bool = True) -> None:
    """Raises StartupError if an address is impossible.

    Or in use, unless it `may_be_taken`, as it is while this server runs.
    """
    for key, address in _addresses(config).items():
        try:
            claim(address)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or not may_be_taken:
                raise unusable(address, error, key) from error


def _addresses(config: Config) -> dict[str, Address]:
    """The addresses to listen on, by setting."""
    found = {"bind_address": config.bind_address, "beanstalk_address": config.beanstalk_address}
    return {key: address for key, address in found.items() if address is not None}
