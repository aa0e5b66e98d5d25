"""Reloads the settings while the server runs: one process reads and checks them, and tells the others.

Whatever cannot be used changes nothing. What is told can be used by all: nothing is read again for it.
"""

import asyncio
import logging
import os
import pickle
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, Self, TypeVar

from delayqueue.config.config import Config
from delayqueue.config.loading import load
from delayqueue.config.reloaded import changed_to
from delayqueue.config.startup import StartupError, StoreUnwell
from delayqueue.log import set_up
from delayqueue.server.settings import Settings
from delayqueue.tasks import at_most
from delayqueue.threads import Threads
from delayqueue.web.proxy_login import proxy_warnings

log = logging.getLogger(__name__)

READ_S: Final = 60.0  # to read files: some are on the network
CHECK_S: Final = 2.0  # for a look into the store: tokens do not wait for it
LOOK_S: Final = 0.5  # between two checks of the files
SIZE_BYTES: Final = 8  # of the number before each message

T = TypeVar("T")
Files = tuple[Path, ...]
Stamp = tuple[int, int, int] | None
Check = Callable[[Config], Awaitable[None]]  # raises StartupError


class Reloader:
    """Has the settings in force, and decides which take their place."""

    def __init__(self, settings: Settings, threads: Threads) -> None:
        """`threads` read files."""
        self.settings = settings
        self._threads = threads
        self._changed = asyncio.Event()  # set, and replaced, when others are in force
        self._seen: dict[Files, tuple[Stamp, ...]] = {}
        self._read: dict[Files, tuple[Stamp, ...]] = {}
        self._busy: set[Files] = set()  # at which a thread is

    @classmethod
    async def begin(cls, config: Config) -> Self:
        """A reloader with the settings that the server starts with. Raises StartupError if they are invalid."""
        threads = Threads("reload")
        settings = await in_time(threads, "reading files", partial(Settings.read, config))
        _warn(config)
        return cls(settings, threads)

    async def run(self, requested: asyncio.Event, check: Check) -> None:
        """Read everything again whenever `requested` is set, and a file when it has changed, until cancelled.

        `check` asks the store whether it accepts the sections of a config.
        """
        while True:
            async with at_most(LOOK_S):
                await requested.wait()
            if requested.is_set():
                requested.clear()
                await self._attempt(self._reload(check))
            else:
                await self._look()

    async def news(self, known: Settings) -> AsyncIterator[Settings]:
        """The settings that replace the known ones, one after the other. Some may be left out."""
        while True:
            while self.settings is known:
                await self._changed.wait()
            known = self.settings
            yield known

    @contextmanager
    def channel(self, name: str) -> Iterator[tuple[Settings, socket.socket]]:
        """The settings for a process that is started now, and where it receives() others until the block ends."""
        ours, theirs = socket.socketpair()
        settings = self.settings
        telling = asyncio.create_task(self._tell(ours, settings), name=f"settings for {name}")
        try:
            yield settings, theirs
        finally:
            telling.cancel()
            theirs.close()

    async def _tell(self, channel: socket.socket, known: Settings) -> None:
        _, writer = await asyncio.open_unix_connection(sock=channel)
        try:
            async for settings in self.news(known):
                message = pickle.dumps(settings)
                writer.write(len(message).to_bytes(SIZE_BYTES) + message)
                await writer.drain()  # if it is stuck, it gets only the latest once it goes on
        except OSError:  # it has ended
            pass
        finally:
            writer.transport.abort()

    async def _attempt(self, change: Awaitable[None]) -> None:
        """Wait for a change; if it fails, log why, with a line for each reason."""
        try:
            await change
        except StartupError as error:
            reasons = list(error.messages)
        except Exception as error:  # a bug must not end the server
            log.exception("a reload failed unexpectedly")
            reasons = [repr(error)]
        else:
            return
        for reason in reasons:
            log.error("not reloaded, the previous settings stay: %s", reason)

    async def _reload(self, check: Check) -> None:
        """Raises StartupError if something is wrong with the new settings."""
        doing, work = "reading the settings", partial(read_again, self.settings)
        settings, left = await in_time(self._threads, doing, work)
        with suppress(StoreUnwell):
            async with at_most(CHECK_S):
                await check(settings.config)
        self._put_into_force(settings)
        _warn(settings.config)
        if left:
            log.warning("not changed: %s; this takes a restart", ", ".join(left))

    async def _look(self) -> None:
        """Read the files that have changed, except at a file system that hangs."""
        for files, read in self.settings.watched().items():
            if files not in self._busy:
                await self._attempt(self._look_at(files, read))

    async def _look_at(self, files: Files, read: Callable[[Settings], Settings]) -> None:
        """Raises StartupError if the files have changed and are invalid, or it takes too long."""
        stamps = await self._at(files, "looking at", partial(_stamps, files))
        # read them only when they no longer change: before, they may be half written
        if stamps == self._seen.get(files) != self._read.get(files):
            self._read[files] = stamps
            try:
                settings = await self._at(files, "reading", partial(read, self.settings))
            except TooSlow:
                del self._read[files]
                raise
            if settings != self.settings:
                self._put_into_force(settings._replace(source=_names(files)))
        self._seen[files] = stamps

    async def _at(self, files: Files, doing: str, work: Callable[[], T]) -> T:
        """What `work` at these files returns. Raises TooSlow; then a thread is busy at them until it ends."""

        def working() -> T:
            try:
                return work()
            finally:
                self._busy.discard(files)

        self._busy.add(files)
        return await in_time(self._threads, f"{doing} {_names(files)}", working)

    def _put_into_force(self, settings: Settings) -> None:
        self.settings = settings
        self._changed.set()
        self._changed = asyncio.Event()


async def received(channel: socket.socket) -> AsyncIterator[Settings]:
    """The settings that a process receives on its channel, endlessly."""
    reader, writer = await asyncio.open_unix_connection(sock=channel)
    try:
        while True:
            size_bytes = int.from_bytes(await reader.readexactly(SIZE_BYTES))
            yield pickle.loads(await reader.readexactly(size_bytes))  # noqa: S301  # from our parent
    except (asyncio.IncompleteReadError, ConnectionError):
        # the parent has ended, and so will this process (processes.py)
        await asyncio.Event().wait()
    finally:
        writer.close()


class TooSlow(StartupError):
    """Files were not read in time. A thread may still be at it."""


async def in_time(threads: Threads, doing: str, work: Callable[[], T]) -> T:
    """What `work` returns. It runs in a thread: meanwhile everything else goes on.

    Raises TooSlow, which says what it was `doing`, if it takes too long.
    """
    try:
        async with asyncio.timeout(READ_S):
            return await threads.run(work)
    except TimeoutError:
        raise TooSlow(f"{doing} takes longer than {READ_S:g} s") from None


def read_again(settings: Settings) -> tuple[Settings, list[str]]:
    """The settings after reading the file of their config again, and the keys of changes that take a restart.

    Raises StartupError if something is wrong with it, or with a file of tokens or TLS that it names, or if it would
    leave the server less protected.
    """
    found, left = changed_to(settings.config, load(settings.config.file, os.environ))
    return Settings.read(found, settings.revision + 1), left


def announce(settings: Settings) -> None:
    """Log, in their own log format, that these settings are in force in this process."""
    set_up(settings.config.log_level, settings.config.log_format)
    log.info("reloaded: %s", settings.source)


def _warn(config: Config) -> None:
    for warning in proxy_warnings(config):
        log.warning("%s", warning)


def _names(files: Files) -> str:
    return ", ".join(map(str, files))


def _stamps(files: Files) -> tuple[Stamp, ...]:
    return tuple(map(_stamp, files))


def _stamp(file: Path) -> Stamp:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ctime_ns, status.st_size, status.st_ino  # ctime: rights count, too
