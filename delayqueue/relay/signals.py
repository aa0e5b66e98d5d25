"""SIGTERM and SIGINT, which end the relay after its batch, and waits that they interrupt."""

from __future__ import annotations

import os
import select
import signal
from typing import Self


class StopSignals:
    """Notes SIGTERM and SIGINT within a `with` block, in the main thread. `stop`: one has come."""

    def __init__(self) -> None:
        self.stop = False
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)

    def __enter__(self) -> Self:
        signal.set_wakeup_fd(self._wake)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)

    def wait(self, limit_s: float, *fds: int) -> None:
        """Wait until a signal comes, a descriptor can be read, or the time is over."""
        # a byte in the pipe stays: there is no second wait
        select.select([self._woken, *fds], [], [], limit_s)

    def _note(self, *_: object) -> None:
        self.stop = True
