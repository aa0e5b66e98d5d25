"""What a serving process derives from its config, and derives again on SIGHUP."""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from delayqueue.beanstalk.access import Access
from delayqueue.beanstalk.door import Door
from delayqueue.config.config import Config
from delayqueue.config.loading import load
from delayqueue.config.sections import Sections
from delayqueue.config.startup import StartupError
from delayqueue.delivery.addresses import AddressGuard
from delayqueue.delivery.callables import Handler, load_all
from delayqueue.delivery.trial import try_webhook
from delayqueue.delivery.webhook import Webhooks
from delayqueue.engine.queue import DelayQueue
from delayqueue.errors import Unavailable
from delayqueue.log import set_up
from delayqueue.server.reload import Watched
from delayqueue.web.api import Api
from delayqueue.web.auth import Authenticator
from delayqueue.web.endpoints import ENDPOINTS
from delayqueue.web.envelope import Responder
from delayqueue.web.front import Front, build_front, is_protected
from delayqueue.web.peers import Peers
from delayqueue.web.tls import Tls

log = logging.getLogger(__name__)

RETRY_S: Final = 1.0


class Settings:
    """The config in force, and the parts of the server that depend on it."""

    def __init__(
        self,
        config: Config,
        queue: DelayQueue,
        peers: Peers,
        webhooks: Webhooks,
        make_front: Callable[..., Front],
    ) -> None:
        """Raises StartupError if a file or a handler that the config names is invalid."""
        self.tls = Tls.of(config)
        self._config = config
        self._queue = queue
        self._peers = peers
        self._webhooks = webhooks
        self._make_front = make_front
        self._guard = Authenticator.of(config)
        self._addresses = AddressGuard(config.webhook_allow)
        self.handlers: dict[str, Handler] = self._handlers_of(config)
        self.door = Door(queue, Access.of(config))
        self.front: Front = self._front()

    async def declare(self) -> None:
        """Declare the file's sections in the store.

        Raises StartupError if the store has other entries of such a name, or a limit is too small; then nothing is
        declared.
        """
        sections = self._config.sections
        if sections is not None:
            subscribers = [one.subscriber for one in sections.subscribers]
            self._queue.topics.check_limits(sections.limits)
            await self._queue.subscribers.check_declared(subscribers)
            await self._queue.schedules.check_declared(sections.schedules)
            await self._queue.subscribers.declare(subscribers)
            await self._queue.schedules.declare(sections.schedules)
            await self._queue.topics.declare_limits(sections.limits)

    async def follow(self, asked: asyncio.Event) -> None:
        """Reload the config whenever `asked` is set, until cancelled. If it is invalid, nothing changes."""
        while True:
            await asked.wait()
            asked.clear()
            try:
                config, left = read_again(self._config)
                self._change(config, self._handlers_of(config))
            except StartupError as error:
                refuse(error)
            else:
                announce(config, left)
                await self._declare_again(asked)

    @property
    def terms(self) -> str:
        """How, and to whom, HTTP is served, as the log says it behind the address."""
        tls = " with TLS" if self.tls else ""
        if is_protected(self._config, self._guard):
            return f"{tls}, clients on this machine only (protected_mode = yes)"
        return tls

    def watched(self) -> list[Watched]:
        """The files that are reloaded when they change."""
        tokens = self._config.auth_tokens_file
        return [
            *([Watched((tokens,), self._guard.reload)] if tokens else ()),
            *([Watched(self.tls.files, self.tls.reload)] if self.tls else ()),
        ]

    def _change(self, config: Config, handlers: Mapping[str, Handler]) -> None:
        """Raises StartupError if a file has become invalid since it was checked."""
        if self.tls:
            self.tls.configure(config)
        self._guard.configure(config)
        self._config = config
        self.door.access = Access.of(config)
        self.handlers.update(handlers)  # one that is no longer named may still be running
        self.front.answer_as(self._front())

    async def _declare_again(self, asked: asyncio.Event) -> None:
        """Declare, as soon as the store answers. Tokens do not wait for that."""
        while not asked.is_set():
            try:
                await self.declare()
            except Unavailable:
                log.warning("the sections of the file are declared when the store answers again")
                await asyncio.sleep(RETRY_S)
            except StartupError as error:
                log.error("the sections of the file are not declared: %s", error)  # noqa: TRY400  # the message says everything
                return
            else:
                return

    def _handlers_of(self, config: Config) -> dict[str, Handler]:
        """Raises StartupError if a subscriber's handler cannot be called."""
        declared = (config.sections or Sections()).subscribers
        self._addresses.check_declared(declared)
        return load_all(declared)

    def _front(self) -> Front:
        config = self._config
        self._queue.metrics.most_topics = config.metrics_topics
        api = Api(
            self._queue,
            Responder(config.language),
            config.max_body_bytes,
            config.queue_block_timeout_s,
            self._peers,
            config.metrics_topics,
            config.shown(),
            self._guard,
            self._addresses.check_url,
            partial(try_webhook, self._webhooks),
            ENDPOINTS,
        )
        return build_front(api, config, self._make_front)


def read_again(config: Config) -> tuple[Config, list[str]]:
    """The new config after reading the file of `config` again, and the keys of changes that take a restart.

    Raises StartupError if something is wrong with it, or with a file of tokens or TLS that it names.
    """
    found, left = config.changed_to(load(config.file, os.environ))
    Authenticator.of(found)
    Tls.of(found)
    Access.of(found)
    return found, left


def announce(config: Config, left: list[str]) -> None:
    """Log as the new config says, beginning with the news that it is in force."""
    set_up(config.log_level, config.log_format)
    log.info("reloaded: %s", config.file or "the environment")
    if left:
        log.warning("not changed: %s; this takes a restart", ", ".join(left))


def refuse(error: StartupError) -> None:
    """Log why the settings stay as they were."""
    for line in error.messages:
        log.error("not reloaded, the previous settings stay: %s", line)
