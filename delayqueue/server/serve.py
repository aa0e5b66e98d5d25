"""Starts the server: this process serves, or it supervises several that do."""

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import uvloop

from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError, StoreUnwell
from delayqueue.log import set_up
from delayqueue.server.declarations import check_sections
from delayqueue.server.loops import Loop, log_unheard, running
from delayqueue.server.ports import check_addresses, held_ports
from delayqueue.server.process import NONE_DECLARED, Process
from delayqueue.server.processes import (
    HELD_BACK,
    SameCode,
    kill_hanging,
    let_supervisor_reload,
    shared_numbers,
    supervise,
)
from delayqueue.server.reload import Reloader, announce, received
from delayqueue.server.service import Service
from delayqueue.server.settings import Settings
from delayqueue.server.store_opening import FIRST_S, open_servers, prepare_store
from delayqueue.server.systemd import Notifier
from delayqueue.store.connect import connect
from delayqueue.store.servers import Servers
from delayqueue.tasks import at_most, left_when


class Signals(NamedTuple):
    """Signals to this process."""

    stop: asyncio.Event  # SIGTERM, SIGINT
    reload: asyncio.Event  # SIGHUP


async def serve(config: Config) -> None:
    """Serve until SIGTERM or SIGINT; reload the settings on SIGHUP.

    Raises StartupError if the server cannot start; every other error is a bug.
    """
    signals = _prepare_loop()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_BACK)  # which the command line has blocked
    # checked before anything is started, which would then have to be stopped
    check_addresses(config, may_be_taken=False)
    async with AsyncExitStack() as lifetimes:
        lifetimes.callback(_ignore_reload)
        begin = lifetimes.enter_async_context
        async with left_when(signals.stop):  # an embedded store may load for minutes
            reloader = await Reloader.begin(config)
            servers, socket_path = await begin(open_servers(config, waits=True))
        if signals.stop.is_set():
            return
        check = partial(check_sections, servers)
        reload = partial(reloader.run, signals.reload, check)
        await begin(running({"reload": reload}, signals.stop))
        shared = list if config.workers == 1 else shared_numbers
        pulses, declared = shared([0.0] * config.workers), shared([NONE_DECLARED])
        await begin(Notifier(os.environ, os.getpid()).reporting(pulses, signals.stop))
        if config.workers == 1:
            service = Service(Process(pulses, declared), servers, socket_path, signals.stop)
            await service.run(reloader.settings, reloader.news(reloader.settings))
        else:
            folder = Path(lifetimes.enter_context(_figures_folder()))
            await _check_store(servers, config, socket_path)
            loops: dict[str, Loop] = {
                "servers of the store": servers.watch,
                "log": partial(_announce_all, reloader),
                "hanging workers": partial(kill_hanging, pulses),
            }
            await begin(running(loops, signals.stop))
            first = Process(pulses, declared, folder=folder)
            prepare = partial(_prepared, reloader, socket_path, SameCode(), first)
            ports = lifetimes.enter_context(held_ports(config))
            await supervise(config.workers, prepare, signals.stop, ports=ports)


def _figures_folder() -> TemporaryDirectory[str]:
    """The directory of the sockets by which workers exchange their figures."""
    try:
        return TemporaryDirectory(prefix="delayqueue-", ignore_cleanup_errors=True)
    except OSError as error:
        raise StartupError(f"{error.strerror}: set TMPDIR to a writable one") from None


async def _check_store(servers: Servers, config: Config, socket_path: str | None) -> None:
    """Raises StartupError if the settings are wrong for the store. All else is logged by worker 1."""
    with suppress(StoreUnwell):
        async with at_most(FIRST_S):
            await prepare_store(servers, config, socket_path, is_first=False)


async def _announce_all(reloader: Reloader) -> None:
    """Log each reload, also in the process that serves nothing itself."""
    async for settings in reloader.news(reloader.settings):
        announce(settings)


@contextmanager
def _prepared(
    reloader: Reloader, socket_path: str | None, same_code: SameCode, first: Process, number: int
) -> Iterator[Callable[[], None]]:
    """The work of process `number`, which receives reloaded settings until the block ends."""
    with reloader.channel(f"worker {number}") as (settings, channel):
        process = first._replace(number=number)
        yield partial(_work, same_code, process, socket_path, settings, channel)
        process.ended()


def _work(
    _: SameCode,
    process: Process,
    socket_path: str | None,
    settings: Settings,
    channel: socket.socket,
) -> None:
    """The work of one of several processes on the port. The first argument was checked as it was unpickled."""
    config = settings.config
    set_up(config.log_level, config.log_format)

    async def work() -> None:
        stop = _prepare_loop().stop
        let_supervisor_reload()
        async with connect(config, socket_path, waits=True) as servers:
            await Service(process, servers, socket_path, stop).run(settings, received(channel))

    uvloop.run(work())


def _prepare_loop() -> Signals:
    """Let the running loop log what nobody hears of, and set the events of the signals that this process gets."""
    signals = Signals(asyncio.Event(), asyncio.Event())
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log_unheard)
    loop.add_signal_handler(signal.SIGTERM, signals.stop.set)
    loop.add_signal_handler(signal.SIGINT, signals.stop.set)
    # the loop would let it end the process for a moment, when it does not handle it any more
    signal.signal(signal.SIGHUP, lambda *_: loop.call_soon_threadsafe(signals.reload.set))
    return signals


def _ignore_reload() -> None:
    """Ignore SIGHUP from now on."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
