"""Listens for the topics that other server processes made ready."""

import asyncio
import logging
from collections.abc import Callable

from delayqueue.errors import Unavailable
from delayqueue.store.store import Store

log = logging.getLogger(__name__)

RETRY_S = 0.5  # until the next try when the connection was lost


class Wakeups:
    """Passes other processes' messages to `wake`; `resync` is called where messages may have been missed."""

    def __init__(
        self, store: Store, wake: Callable[[int, str, int], None], resync: Callable[[int], None]
    ) -> None:
        self._store = store
        self._wake = wake
        self._resync = resync

    async def run(self) -> None:
        """Listen until cancelled."""
        while True:
            try:
                async for bucket, topic, arrived in self._store.announcements(self._resync):
                    self._wake(bucket, topic, arrived)
            except Unavailable:
                await asyncio.sleep(RETRY_S)
