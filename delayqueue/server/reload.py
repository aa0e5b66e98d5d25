"""Reloads the settings: reads the config again while the server runs, and logs the result.

Whatever cannot be used changes nothing. settings.py puts them into force, reload_workers.py in all processes or none.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, NamedTuple, Protocol, Self, TypeVar

from delayqueue.beanstalk.access import TubeAccess
from delayqueue.config.config import Config
from delayqueue.config.loading import load
from delayqueue.config.reloaded import changed_to
from delayqueue.config.startup import StartupError
from delayqueue.domain.access import Grant
from delayqueue.log import set_up
from delayqueue.threads import Threads
from delayqueue.web.auth import all_grants
from delayqueue.web.tls import Tls

log = logging.getLogger(__name__)

READ_S: Final = 60.0  # to read files: some disks take long

T = TypeVar("T")


class Files(NamedTuple):
    """What the files that a config names hold, read and checked."""

    grants: Sequence[Grant]
    tls: Tls | None
    access: TubeAccess

    @classmethod
    def of(cls, config: Config) -> Self:
        """Read them. Raises StartupError if one is invalid."""
        return cls(all_grants(config), Tls.of(config), TubeAccess.of(config))


async def in_time(doing: str, work: Callable[[], T]) -> T:
    """What `work` returns. It runs in a thread: meanwhile everything else goes on.

    Raises StartupError, which says what it was `doing`, if it takes too long.
    """
    try:
        async with asyncio.timeout(READ_S):
            return await Threads("reload").run(work)
    except TimeoutError:
        raise StartupError(f"{doing} takes longer than {READ_S:g} s") from None


class Changeable(Protocol):
    """What works by a config and can change to another one."""

    config: Config

    async def change(self, config: Config) -> list[str]:
        """Use it. Returns why that cannot be, or raises StartupError; [] if it is done."""
        ...


async def reload_on(requested: asyncio.Event, settings: Changeable) -> None:
    """Read the config again whenever `requested` is set, until cancelled. If it cannot be used, nothing changes."""
    while True:
        await requested.wait()
        requested.clear()
        with collected() as refusals:
            doing, work = "reading the settings", partial(read_again, settings.config)
            config, left = await in_time(doing, work)
            refusals.extend(await settings.change(config))
        for line in refusals:
            log.error("not reloaded, the previous settings stay: %s", line)
        if not refusals:
            announce(config, left)


def read_again(config: Config) -> tuple[Config, list[str]]:
    """The new config after reading the file of `config` again, and the keys of changes that take a restart.

    Raises StartupError if something is wrong with it, or with a file of tokens or TLS that it names, or if it would
    open a door.
    """
    found, left = changed_to(config, load(config.file, os.environ))
    Files.of(found)
    return found, left


@contextmanager
def collected() -> Iterator[list[str]]:
    """The reasons why the block fails, a line each, instead of an exception."""
    reasons: list[str] = []
    try:
        yield reasons
    except StartupError as error:
        reasons += error.messages
    except Exception as error:  # a bug must not end the server
        log.exception("a reload failed unexpectedly")
        reasons.append(repr(error))


def announce(config: Config, left: Sequence[str] = ()) -> None:
    """Log that the new config is in force, in the way that it says; the changes of `left` take a restart."""
    set_up(config.log_level, config.log_format)
    log.info("reloaded: %s", config.file or "the environment")
    if left:
        log.warning("not changed: %s; this takes a restart", ", ".join(left))
