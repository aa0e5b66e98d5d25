"""Notices files that have changed, so that tokens and certificates are replaced without a restart."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from delayqueue.config.startup import StartupError

log = logging.getLogger(__name__)

LOOK_S: Final = 0.5  # between two checks of the files

Stamp = tuple[int, int, int] | None


class Watched(NamedTuple):
    """Files that belong together, and the function that reads them again.

    It raises StartupError if they are invalid.
    """

    files: tuple[Path, ...]
    reload: Callable[[], None]


async def watch(watched: Callable[[], Iterable[Watched]]) -> None:
    """Reload what has changed, endlessly. If that fails, it is logged, and the previous contents stay in force.

    `watched` is called each time, so that other files can take the place of those at the start.
    """
    in_force: dict[Watched, tuple[Stamp, ...]] = {}
    seen: dict[Watched, tuple[Stamp, ...]] = {}
    while True:
        for each in watched():
            stamps = _stamps(each.files)
            if each not in in_force:
                in_force[each] = stamps
                _reload(each, logging.DEBUG)  # they may have changed since they were first read
            # only when they no longer change: they may be half written
            elif stamps == seen[each] != in_force[each]:
                in_force[each] = stamps
                _reload(each)
            seen[each] = stamps
        await asyncio.sleep(LOOK_S)


def _reload(watched: Watched, level: int = logging.INFO) -> None:
    names = ", ".join(map(str, watched.files))
    try:
        watched.reload()
    except StartupError as error:
        log.error("not reloaded, the previous version stays: %s", error)  # noqa: TRY400  # the message says everything
    else:
        log.log(level, "reloaded: %s", names)


def _stamps(files: tuple[Path, ...]) -> tuple[Stamp, ...]:
    return tuple(map(_stamp, files))


def _stamp(file: Path) -> Stamp:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
