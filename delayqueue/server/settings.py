"""What a serving process derives from its config, and derives again on SIGHUP."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

from delayqueue.beanstalk.server import BeanstalkServer
from delayqueue.config.config import Config
from delayqueue.config.sections import Sections
from delayqueue.config.startup import StartupError
from delayqueue.delivery.addresses import AddressGuard
from delayqueue.delivery.call_guard import CallGuard, check_declared_calls
from delayqueue.delivery.callables import Handler, load_all
from delayqueue.delivery.trial import try_webhook
from delayqueue.delivery.webhook import Webhooks
from delayqueue.domain.access import EVERYWHERE
from delayqueue.engine.queue import DelayQueue
from delayqueue.errors import Unavailable
from delayqueue.server.file_watch import Use, Watched
from delayqueue.server.peers import Peers
from delayqueue.server.reload import Files, announce, collected, in_time
from delayqueue.server.reload_workers import Participant
from delayqueue.web.api import Api
from delayqueue.web.auth import Authenticator, all_grants
from delayqueue.web.endpoints import ENDPOINTS
from delayqueue.web.envelope import Responder
from delayqueue.web.front import Front, build_front, is_protected
from delayqueue.web.tls import Tls

log = logging.getLogger(__name__)

RETRY_S: Final = 1.0  # before sections are declared once more in a store that does not answer
CHECK_S: Final = 2.0  # for a look into the store before a reload


class Prepared(NamedTuple):
    """New settings, with everything that could fail behind them: to put them into force, nothing is read again."""

    config: Config
    files: Files
    handlers: Mapping[str, Handler]
    front: Front


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
        files = Files.of(config)
        self.tls = files.tls
        self.changing = asyncio.Lock()  # held while settings change
        self.config = config
        self._queue = queue
        self._jobs = queue.within(EVERYWHERE)
        self._peers = peers
        self._webhooks = webhooks
        self._make_front = make_front
        self._guard = Authenticator(files.grants, config.token_rate)
        self._addresses = AddressGuard(config.webhook_allow)
        self._calls = CallGuard(config.call_allow) if config.calls else None
        self._check_targets(config)
        self.handlers: dict[str, Handler] = load_all(config.declared.subscribers)
        self.beanstalk = BeanstalkServer(queue, files.access)
        self._undeclared = asyncio.Event()  # sections that the store does not know yet
        self._waits_to_declare = False  # and the log has said so
        self.front: Front = self._front(config)
        queue.metrics.most_topics = config.metrics_topics

    async def declare(self) -> None:
        """Declare the file's sections in the store, or, if it does not answer, leave that to keep_declared().

        Raises StartupError if the store has other entries of such a name, or a limit is too small; then nothing is
        declared.
        """
        sections = self.config.sections
        if sections is None:
            return
        try:
            await self._check(sections)
            await self._queue.subscribers.declare([one.entry for one in sections.subscribers])
            await self._queue.schedules.declare([one.entry for one in sections.schedules])
            await self._jobs.topics.declare_limits(sections.limits)
        except Unavailable:
            if not self._waits_to_declare:
                log.warning("the sections of the file are declared when the store answers again")
            self._waits_to_declare = True
            self._undeclared.set()
        else:
            self._waits_to_declare = False

    async def keep_declared(self) -> None:
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

    async def change(self, config: Config) -> list[str]:
        """Use this config. Raises StartupError if something that it names cannot be used; then nothing changes."""
        async with self.changing:
            self._use(await self._prepare(config))
        return []

    async def reload_with(self, participant: Participant) -> None:
        """Vote on configs, and use those that all workers can use, until cancelled."""
        participant.report_serving()
        while True:
            proposed = await participant.proposed()
            async with self.changing:
                with collected() as refusals:
                    prepared = await self._prepare(proposed.config)
                if not await participant.vote(proposed, refusals):
                    continue
                # the others agreed while this one started: the next one starts with that config
                if refusals:
                    raise StartupError(*refusals)
                self._use(prepared)
                announce(proposed.config)

    @property
    def terms(self) -> str:
        """How, and to whom, HTTP is served, as the log says it behind the address."""
        tls = " with TLS" if self.tls else ""
        if is_protected(self.config, self._guard):
            return f"{tls}, clients on this machine only (protected_mode = yes)"
        return tls

    def watched(self) -> list[Watched]:
        """The files that are reloaded when they change."""
        tokens = self.config.auth_tokens_file
        return [
            *([Watched((tokens,), self._read_tokens)] if tokens else ()),
            *([Watched(self.tls.files, self._read_tls)] if self.tls else ()),
        ]

    def _read_tokens(self) -> Use:
        return partial(self._guard.use, all_grants(self.config), self.config.token_rate)

    def _read_tls(self) -> Use:
        tls = Tls.of(self.config)
        return partial(self._use_tls, tls)

    async def _prepare(self, config: Config) -> Prepared:
        """Raises StartupError if something that the config names cannot be used. Changes nothing.

        Files are read and modules imported in a thread, so that everything else goes on.
        """
        handlers = dict[str, Handler]()
        self._check_targets(config)
        files = await in_time("reading files", partial(Files.of, config))
        for one in config.declared.subscribers:
            doing = f"{one.where}: handler = {one.entry.handler}: importing it"
            handlers |= await in_time(doing, partial(load_all, [one]))
        with suppress(Unavailable, TimeoutError):  # tokens do not wait for the store
            async with asyncio.timeout(CHECK_S):
                await self._check(config.declared)
        return Prepared(config, files, handlers, self._front(config))

    def _use(self, prepared: Prepared) -> None:
        """Put prepared settings into force: nothing here can fail."""
        config = self.config = prepared.config
        self._use_tls(prepared.files.tls)
        self._guard.use(prepared.files.grants, config.token_rate)
        self.beanstalk.use(prepared.files.access)
        self.handlers.update(prepared.handlers)  # one that is no longer named may still be running
        self._queue.metrics.most_topics = config.metrics_topics
        self.front = prepared.front
        self._undeclared.set()

    def _use_tls(self, tls: Tls | None) -> None:
        if self.tls and tls:  # it can be neither switched on nor off
            self.tls.use(tls)

    def _check_targets(self, config: Config) -> None:
        """Raises StartupError if a section names a URL that this server may not call."""
        self._addresses.check_declared(config.declared.subscribers)
        check_declared_calls(config)

    async def _check(self, sections: Sections) -> None:
        """Raises StartupError if the store cannot accept the sections' declarations, Unavailable if it fails."""
        self._jobs.topics.check_limits(sections.limits)
        await self._queue.subscribers.check_declared([one.entry for one in sections.subscribers])
        await self._queue.schedules.check_declared([one.entry for one in sections.schedules])

    def _front(self, config: Config) -> Front:
        api = Api(
            queue=self._queue,
            jobs=self._jobs,
            config=config,
            responder=Responder(config.language),
            guard=self._guard,
            snapshots=self._peers.snapshots,
            check_url=self._addresses.check_url,
            check_call=self._calls.check_url if self._calls else None,
            try_webhook=partial(try_webhook, self._webhooks),
            endpoints=ENDPOINTS,
        )
        return build_front(api, config, self._make_front)
