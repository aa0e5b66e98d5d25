"""What a process of the server runs, from its start to its stop."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Final

from delayqueue.config.build import build
from delayqueue.config.config import Config
from delayqueue.delivery.addresses import AddressGuard
from delayqueue.delivery.call_guard import CallGuard
from delayqueue.delivery.job_calls import JobCalls
from delayqueue.delivery.subscribed_topics import SubscribedTopics
from delayqueue.engine.queue import DelayQueue
from delayqueue.metrics import Snapshot
from delayqueue.server.declarations import Declarations
from delayqueue.server.frontend import Frontend
from delayqueue.server.listening import accepting_clients
from delayqueue.server.loops import Loop, running
from delayqueue.server.open_files import OpenFiles, warn_of_limit
from delayqueue.server.ports import with_free_port
from delayqueue.server.process import Process
from delayqueue.server.reload import announce
from delayqueue.server.settings import Settings
from delayqueue.server.store_opening import StoreOpening, build_store
from delayqueue.server.systemd import START_S
from delayqueue.server.tracing import Traced, tracing
from delayqueue.store.buckets import Layout
from delayqueue.store.servers import Servers
from delayqueue.store.store import Store
from delayqueue.tasks import at_most
from delayqueue.web.metrics import process_figures

log = logging.getLogger(__name__)

PULSE_S: Final = 0.5  # between two checks of whether this process works
BEGIN_S: Final = 1.0  # at most, for the first ticks in a store that is open
GRACE_S: Final = 3.0  # for calls in flight when the server stops

Delivery = SubscribedTopics | JobCalls


class Service:
    """All that a process of the server runs: run() is its life.

    What run() begins goes on until its end, and ends in the reverse order.
    """

    def __init__(
        self, process: Process, servers: Servers, socket_path: str | None, stop: asyncio.Event
    ) -> None:
        """`socket_path`: of the embedded store, None = there is none; `stop` ends the service."""
        self._process = process
        self._servers = servers
        self._socket_path = socket_path
        self._stop = stop

    async def run(self, settings: Settings, news: AsyncIterator[Settings]) -> None:
        """Serve by these settings, and by each of the `news` in turn.

        Raises StartupError if that is impossible, LoopDied if something that it needs has ended.
        """
        config, process = with_free_port(settings.config), self._process
        store = build_store(self._servers, config, Layout(config.bucket_size))
        opening = StoreOpening(store, config, self._socket_path, is_first=process.number == 1)
        await opening.begin()
        queue = _queue(store, config, process)
        async with (
            tracing(config, process.name(config)) as traced,
            traced.webhooks(AddressGuard(config.webhook_allow)) as webhooks,
            _calls(config, queue, traced) as calls,
        ):
            deliveries = {"delivery": SubscribedTopics(queue, webhooks), **calls}
            figures = partial(_figures, queue)
            frontend = Frontend(
                settings, queue, webhooks, traced.front, partial(process.all_figures, figures)
            )
            sections = Declarations(settings, queue, process.declared)
            await sections.begin(is_replacement=process.is_replacement)
            _freeze_objects()
            loops = self._background(opening, queue, deliveries) | {
                "sections": sections.run,
                "settings": partial(_use_news, news, settings, frontend, sections),
            }
            async with (
                process.sharing_figures(figures),
                aclosing(queue.history),
                aclosing(queue),
                running(loops, self._stop),
                _finishing_calls(deliveries),
                accepting_clients(config, frontend, queue.metrics),
            ):
                await _until_ready(queue)
                async with (
                    running({"pulse": partial(_pulse, queue, process)}, self._stop),
                    _draining(queue, frontend, deliveries),
                ):
                    process.beat()  # if it dies from now on, another one is_replacement
                    if process.number == 1:
                        warn_of_limit(config.max_connections)
                        log.info("this is delay-queue %s", build())
                    log.info("serving on %s%s", config.bind_address, frontend.log_suffix)
                    await self._stop.wait()
                    log.info("stopping")

    def _background(
        self, opening: StoreOpening, queue: DelayQueue, deliveries: Mapping[str, Delivery]
    ) -> dict[str, Loop]:
        loops = queue.background() | {
            "servers of the store": self._servers.watch,
            "store": opening.run,
        }
        if replicas := queue.store.durability.replicas:
            loops["replicas"] = partial(replicas.watch, self._servers)
        return loops | {name: each.run for name, each in deliveries.items()}


def _queue(store: Store, config: Config, process: Process) -> DelayQueue:
    return DelayQueue(
        store,
        config.max_polls,
        process.name(config),
        buried_retain_ms=config.buried_retain_s and config.buried_retain_s * 1000,
        keeps_history=config.history,
    )


@asynccontextmanager
async def _calls(
    config: Config, queue: DelayQueue, traced: Traced
) -> AsyncIterator[dict[str, Delivery]]:
    """What makes the calls of jobs, by its name; nothing if the config forbids them."""
    if not config.calls:
        yield {}
        return
    guard = CallGuard(config.call_allow)
    async with traced.webhooks(guard.addresses) as webhooks:
        calls = JobCalls(
            queue,
            webhooks,
            guard,
            secrets=dict(config.call_secret),
            per_host=config.call_concurrency,
        )
        yield {"calls": calls}


def _figures(queue: DelayQueue) -> Snapshot:
    """The figures of this process."""
    return queue.metrics.snapshot() | process_figures()


def _freeze_objects() -> None:
    """Hide permanent objects from the garbage collector: each time it went through them, requests waited for 40 ms."""
    gc.collect()
    gc.freeze()


async def _use_news(
    news: AsyncIterator[Settings], known: Settings, frontend: Frontend, sections: Declarations
) -> None:
    """Use the settings that take the place of those known, until cancelled."""
    async for settings in news:
        if settings.revision != known.revision:
            sections.use(settings)
        frontend.use(settings)
        known = settings
        announce(settings)


@asynccontextmanager
async def _finishing_calls(deliveries: Mapping[str, Delivery]) -> AsyncIterator[None]:
    """At its end, wait for calls in flight, but not for long."""
    try:
        yield
    finally:
        if in_hand := set().union(*(each.in_hand for each in deliveries.values())):
            await asyncio.wait(in_hand, timeout=GRACE_S)


async def _until_ready(queue: DelayQueue) -> None:
    """Wait until /readyz is well, which takes a first tick; but not for a store that is unwell.

    A program that starts the server waits for READY=1 or for the log, then asks /readyz, and must not get a 503.
    """
    async with at_most(BEGIN_S):
        while queue.store.closed is None and await queue.unready_buckets():  # noqa: ASYNC110  # it sets no event
            await asyncio.sleep(0.01)


async def _pulse(queue: DelayQueue, process: Process) -> None:
    """Show that this process works: if a timer hangs, its pulse gets old. And that it can accept connections."""
    open_files = OpenFiles(queue.metrics)
    while True:
        open_files.look()
        if (age_s := queue.timers.try_age_s()) is not None:
            process.beat(age_s)
        await asyncio.sleep(PULSE_S if age_s is not None else START_S)


@asynccontextmanager
async def _draining(
    queue: DelayQueue, frontend: Frontend, deliveries: Mapping[str, Delivery]
) -> AsyncIterator[None]:
    """At its end, nothing more is reserved for anybody, and polls are answered: so requests can end."""
    try:
        yield
    finally:
        for each in deliveries.values():
            each.stop()
        frontend.beanstalk.drain()
        await queue.drain()
