"""Notices files that have changed, so that tokens and certificates are replaced without a restart."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from delayqueue.config.startup import StartupError

log = logging.getLogger(__name__)

LOOK_S: Final = 0.5  # between two looks at the files

Stamp = tuple[int, int, int] | None


class Watched(NamedTuple):
    """Files that belong together, and what reads them again. It raises StartupError if they are not right."""

    files: tuple[Path, ...]
    reload: Callable[[], None]


async def watch(watched: Callable[[], Iterable[Watched]]) -> None:
    """Reload what has changed, for ever. Where that fails, the log says so and what was in force stays.

    `watched` is asked each time, so that other files can take the place of those at the start.
    """
    in_force: dict[Watched, tuple[Stamp, ...]] = {}
    seen: dict[Watched, tuple[Stamp, ...]] = {}
    while True:
        for each in watched():
            stamps = _stamps(each.files)
            if each not in in_force:
                in_force[each] = stamps
                _reload(each, logging.DEBUG)  # they may have changed since they were read at first
            # only once they are at rest: whoever writes them may be half-way
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
        log.error("what was in force before stays: %s", error)  # noqa: TRY400  # it says all
    else:
        log.log(level, "read again: %s", names)


def _stamps(files: tuple[Path, ...]) -> tuple[Stamp, ...]:
    return tuple(map(_stamp, files))


def _stamp(file: Path) -> Stamp:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
