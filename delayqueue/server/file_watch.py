"""Watches files of tokens and certificates, and reads those again that have changed."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from delayqueue.config.startup import StartupError
from delayqueue.server.reload import in_time

log = logging.getLogger(__name__)

LOOK_S: Final = 0.5  # between two checks of the files

Stamp = tuple[int, int, int] | None
Use = Callable[[], None]  # puts something that was read into force; raises nothing


class Watched(NamedTuple):
    """Files that belong together, and the function that reads them again.

    It runs in a thread, changes nothing, and raises StartupError if they are invalid.
    """

    files: tuple[Path, ...]
    read: Callable[[], Use]


async def watch(watched: Callable[[], Iterable[Watched]], changing: asyncio.Lock) -> None:
    """Reload what has changed, endlessly. If that fails, it is logged, and the previous contents stay in force.

    `watched` is called each time, so that other files can take the place of those at the start. `changing` is held
    meanwhile: settings change one after the other.
    """
    in_force: dict[tuple[Path, ...], tuple[Stamp, ...]] = {}
    seen: dict[tuple[Path, ...], tuple[Stamp, ...]] = {}
    while True:
        async with changing:
            for each in watched():
                files, stamps = each.files, tuple(map(_stamp, each.files))
                if files not in in_force:
                    in_force[files] = stamps
                    # they may have changed since they were first read
                    await _reload(each, logging.DEBUG)
                # only when they no longer change: they may be half written
                elif stamps == seen[files] != in_force[files]:
                    in_force[files] = stamps
                    await _reload(each)
                seen[files] = stamps
        await asyncio.sleep(LOOK_S)


async def _reload(watched: Watched, level: int = logging.INFO) -> None:
    names = ", ".join(map(str, watched.files))
    try:
        use = await in_time(f"reading {names}", watched.read)
    except StartupError as error:
        log.error("not reloaded, the previous version stays: %s", error)  # noqa: TRY400  # the message says everything
    except Exception:  # a bug must not end the server
        log.exception("not reloaded, the previous version stays: %s", names)
    else:
        use()
        log.log(level, "reloaded: %s", names)


def _stamp(file: Path) -> Stamp:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
