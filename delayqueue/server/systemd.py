"""Tells systemd about the service's state: sd_notify(3) without its library."""

import asyncio
import logging
import socket
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from delayqueue.tasks import TaskGroup, at_most

log = logging.getLogger(__name__)

START_S: Final = 0.1  # between two checks of whether all processes serve
NO_WATCHDOG_S: Final = 60.0  # if systemd has no watchdog


class Notifier:
    """This process as a service of systemd; does nothing if something else started it."""

    def __init__(self, environment: Mapping[str, str], pid: int) -> None:
        """`environment` as systemd.exec(5) describes it; the watchdog may be meant for another process than `pid`."""
        address = environment.get("NOTIFY_SOCKET", "")
        # an @ stands for the zero byte that an abstract socket's name begins with
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        watched = environment.get("WATCHDOG_PID", str(pid)) == str(pid)
        limit_us = environment.get("WATCHDOG_USEC", "0") if watched else "0"
        self._pause_s = int(limit_us) / 2_000_000 or NO_WATCHDOG_S

    @asynccontextmanager
    async def reporting(self, pulses: Sequence[float], stop: asyncio.Event) -> AsyncIterator[None]:
        """Report the processes' state while the block runs.

        `pulses` are those of Process. systemd is told when the service is ready, that it is alive while those of all
        processes that serve are fresh, and that it stops once `stop` is set.
        """
        async with TaskGroup() as group:
            group.create_task(self._follow(pulses, stop), "service")
            yield

    async def _follow(self, pulses: Sequence[float], stop: asyncio.Event) -> None:
        while not all(pulses) and not stop.is_set():
            async with at_most(START_S):
                await stop.wait()
        if not stop.is_set():
            self._send("READY=1")
        while not stop.is_set():
            serving = [pulse for pulse in pulses if pulse > 0]
            if serving and time.monotonic() - min(serving) < self._pause_s:
                self._send("WATCHDOG=1")
            async with at_most(self._pause_s):
                await stop.wait()
        self._send("STOPPING=1")

    def _send(self, state: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
                systemd.setblocking(False)
                systemd.sendto(state.encode(), self._address)
        except OSError as error:
            log.warning("cannot tell systemd %s: %s", state, error)
