"""Declares the sections of the config file in the store, which keeps them for all servers."""

import asyncio
import logging
from collections.abc import MutableSequence
from typing import Final

from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError, StoreUnwell
from delayqueue.domain.access import EVERYWHERE
from delayqueue.engine.queue import DelayQueue
from delayqueue.engine.registrations import entry_of, refuse_taken
from delayqueue.errors import Unavailable
from delayqueue.server.settings import Settings
from delayqueue.store.keys import BucketKeys
from delayqueue.store.layout import check_layout
from delayqueue.store.registry import registered_in
from delayqueue.store.servers import Servers
from delayqueue.store.topics import check_limits

log = logging.getLogger(__name__)

RETRY_S: Final = 1.0  # before a store that did not answer is tried again


async def check_sections(servers: Servers, config: Config) -> None:
    """Raises StartupError if the store cannot accept the sections, StoreUnwell if it cannot tell. Changes nothing."""
    declared = config.declared
    stored = await check_layout(servers, config)
    check_limits(declared.limits, stored.layout.size)
    keys = BucketKeys.of(1, config.bucket_name, config.queue_name)
    subscribers = [entry_of(one.entry) for one in declared.subscribers]
    refuse_taken("subscribers", subscribers, await registered_in(servers, keys, "subscribers"))
    schedules = [entry_of(one.entry) for one in declared.schedules]
    refuse_taken("schedules", schedules, await registered_in(servers, keys, "schedules"))


class Declarations:
    """Keeps the sections of a config declared."""

    def __init__(
        self, settings: Settings, queue: DelayQueue, declared: MutableSequence[float]
    ) -> None:
        """`declared`, shared by the processes, is told the revision whose sections are declared."""
        self._settings = settings
        self._declared = declared
        self._queue = queue
        self._topics = queue.within(EVERYWHERE).topics
        self._undeclared = asyncio.Event()  # sections that the store does not know yet
        self._waits = False  # for the store, and the log has said so
        queue.store.watch.on_other_data(self._declare_again)

    async def begin(self, *, is_replacement: bool) -> None:
        """Declare the sections; in a replacement, let run() do so if no other process of this server has.

        If one has, another server may have declared its own by now. Raises StartupError as declare() does.
        """
        if not is_replacement:
            await self.declare()
        elif self._declared[0] != self._settings.revision:
            self._undeclared.set()

    def use(self, settings: Settings) -> None:
        """Let run() declare the sections of these settings."""
        self._settings = settings
        self._undeclared.set()

    def _declare_again(self) -> None:
        if self._settings.config.sections is not None:
            log.info("the store has other data: the sections of the file are declared again")
            self._undeclared.set()

    async def declare(self) -> None:
        """Declare them, or, if the store does not answer, leave that to run().

        Raises StartupError if the store has other entries of such a name, or a limit is too small; then nothing is
        declared.
        """
        config, revision = self._settings.config, self._settings.revision
        sections = config.sections
        if sections is None:
            return
        try:
            await check_sections(self._queue.store.servers, config)
            await self._queue.subscribers.declare([one.entry for one in sections.subscribers])
            await self._queue.schedules.declare([one.entry for one in sections.schedules])
            await self._topics.declare_limits(sections.limits)
        except (Unavailable, StoreUnwell):
            if not self._waits:
                log.warning("the sections of the file are declared when the store answers again")
            self._waits = True
            self._undeclared.set()
        else:
            self._waits = False
            self._declared[0] = revision

    async def run(self) -> None:
        """Declare the sections whenever they have changed, as soon as the store answers, until cancelled."""
        while True:
            await self._undeclared.wait()
            self._undeclared.clear()
            try:
                await self.declare()
            except StartupError as error:
                log.error("the sections of the file are not declared: %s", error)  # noqa: TRY400  # the message says everything
            if self._undeclared.is_set():
                await asyncio.sleep(RETRY_S)
