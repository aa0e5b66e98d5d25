"""How many files a process may have open, and so how many connections it can have."""

import errno
import logging
import os
import resource
from contextlib import suppress
from typing import Final

from delayqueue.config.startup import StartupError
from delayqueue.metrics import REFUSED, Metrics
from delayqueue.net.connection_limit import BEYOND
from delayqueue.net.each_minute import EachMinute

log = logging.getLogger(__name__)

OWN_FILES: Final = 64  # beside the connections of clients: those to the store, calls, listeners
NOT_COUNTED: Final = OWN_FILES + BEYOND  # by max_connections
HOW: Final = "Raise the limit (ulimit -n; systemd: LimitNOFILE=; Docker: --ulimit nofile=)"


def raise_limit() -> None:
    """Let this process, and those that it starts, open as many files as the system allows (the hard limit).

    Raises StartupError if they are too few for any client.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # macOS: it says "infinity", and does not mean it
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if most_connections(1) < 1:
        raise StartupError(
            f"the limit of open files is {hard}, and {NOT_COUNTED + 1} are needed. {HOW}"
        )


def most_connections(wanted: int) -> int:
    """`wanted`, the setting max_connections, or less if this process may not open as many files.

    0, no limit, becomes what it may open. A connection for which there is no file would be reset in silence: uvloop
    does not tell.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return wanted
    possible = limit - NOT_COUNTED
    return min(wanted, possible) if wanted else possible


def warn_of_limit(wanted: int) -> None:
    """Log a warning if this process may not open the files for `wanted` connections."""
    if (possible := most_connections(wanted)) < wanted:
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        log.warning(
            "max_connections = %d needs %d open files, and the limit is %d: each process accepts %d connections. "
            "%s, or lower max_connections",
            wanted,
            wanted + NOT_COUNTED,
            limit,
            possible,
            HOW,
        )


class OpenFiles:
    """Notices that this process can open no file, so that new connections are reset: uvloop tells nobody of those.

    Each look that finds it so is counted, and the log says it once a minute.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._none_left = EachMinute(self._tell)
        self._reason = ""

    def look(self) -> None:
        """Find out whether one can be opened; needs a running loop."""
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as error:
            if error.errno not in {errno.EMFILE, errno.ENFILE}:
                raise
            self._reason = error.strerror or ""
            self._metrics.count(REFUSED, "open_files")
            self._none_left.happened()

    def _tell(self, count: int) -> None:
        log.warning(
            "new connections are reset, and calls fail: %s (ulimit -n); %d checks, two a second, found it so",
            self._reason,
            count,
        )
