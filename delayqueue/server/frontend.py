"""How clients are answered, by the settings in force."""

from collections.abc import Awaitable, Callable

from delayqueue.beanstalk.server import BeanstalkServer
from delayqueue.beanstalk.tube_access import TubeAccess
from delayqueue.delivery.addresses import AddressGuard
from delayqueue.delivery.call_guard import CallGuard
from delayqueue.delivery.webhook import Webhooks
from delayqueue.domain.access import EVERYWHERE
from delayqueue.engine.queue import DelayQueue
from delayqueue.metrics import Snapshot
from delayqueue.server.settings import Settings
from delayqueue.web.api import Api
from delayqueue.web.auth import Authenticator
from delayqueue.web.endpoints import ENDPOINTS
from delayqueue.web.envelope import Responder
from delayqueue.web.front import Front
from delayqueue.web.proxy_login import ProxyLogins
from delayqueue.web.tls import Tls


class Frontend:
    """What all listeners of a process share, and what other settings replace while clients are connected."""

    def __init__(
        self,
        settings: Settings,
        queue: DelayQueue,
        webhooks: Webhooks,
        make_front: Callable[[Api], Front],
        figures: Callable[[], Awaitable[dict[str, Snapshot]]],
    ) -> None:
        """`figures` returns those of all processes, by number."""
        self._queue = queue
        self._webhooks = webhooks
        self._make_front = make_front
        self._figures = figures
        self._guard = Authenticator()
        self.beanstalk = BeanstalkServer(queue, TubeAccess.of(settings.config))
        self.tls = Tls.of(settings.certificate) if settings.certificate else None
        self.front: Front = self._front(settings)

    def use(self, settings: Settings) -> None:
        """Let these settings take the place of the former ones, for what begins from now on."""
        if self.tls and settings.certificate:  # it can be neither switched on nor off
            self.tls.use(settings.certificate)
        self.beanstalk.use(TubeAccess.of(settings.config))
        self.front = self._front(settings)

    @property
    def log_suffix(self) -> str:
        """How, and to whom, HTTP is served: the log says it behind the address."""
        tls = " with TLS" if self.tls else ""
        if self._guard.is_protected:
            return f"{tls}, clients on this machine only (protected_mode = yes)"
        return tls

    def _front(self, settings: Settings) -> Front:
        """The front that answers by these settings; the guard and the metrics go by them from now on."""
        config = settings.config
        self._guard.use(
            settings.grants,
            config.token_rate,
            ProxyLogins.of(config),
            protected_mode=config.protected_mode,
        )
        self._queue.metrics.most_topics = config.metrics_topics
        api = Api(
            queue=self._queue,
            jobs=self._queue.within(EVERYWHERE),
            config=config,
            responder=Responder(config.language),
            guard=self._guard,
            snapshots=self._figures,
            check_url=AddressGuard(config.webhook_allow).check_url,
            check_call=CallGuard(config.call_allow).check_url if config.calls else None,
            try_webhook=self._webhooks.trial,
            endpoints=ENDPOINTS,
        )
        return self._make_front(api)
