"""What every handler uses: the queue, the limits, the settings."""

import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Self

from delayqueue.answers.subscribers import Trial
from delayqueue.config.config import Config
from delayqueue.domain.access import Scope
from delayqueue.domain.subscriber import Subscriber
from delayqueue.engine.jobs import Jobs
from delayqueue.engine.queue import DelayQueue
from delayqueue.metrics import Snapshot
from delayqueue.web.auth import Authenticator
from delayqueue.web.endpoint import Endpoint
from delayqueue.web.envelope import Responder


class IdMaker:
    """Generates unique ids of 32 hex digits; ids from one generator sort in order.

    64 bits of unix nanoseconds, 64 random bits. Order between machines is as good as their clocks; uniqueness does not
    depend on them.
    """

    def __init__(self) -> None:
        self._last_ns = 0

    def __call__(self) -> str:
        """The next id."""
        self._last_ns = max(time.time_ns(), self._last_ns + 1)
        return f"{self._last_ns:016x}{secrets.token_hex(8)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """Everything that handlers use, by the settings in force, for clients that may reach the same topics."""

    queue: DelayQueue
    jobs: Jobs  # of the topics that the client may reach
    config: Config  # in force
    responder: Responder
    guard: Authenticator
    snapshots: Callable[[], Awaitable[dict[str, Snapshot]]]  # figures of all workers, by number
    check_url: Callable[[str], str]  # raises BadValue for a URL that webhooks may not call
    # raises BadValue for a URL that jobs may not have called; None = the server makes no calls
    check_call: Callable[[str], str] | None
    try_webhook: Callable[[Subscriber, str], Awaitable[Trial]]  # with this body
    endpoints: tuple[Endpoint, ...]  # all endpoints
    new_id: IdMaker = field(default_factory=IdMaker)

    @property
    def scope(self) -> Scope:
        """The topics that the client may reach."""
        return self.jobs.scope

    def confined(self, scope: Scope) -> Self:
        """What the handlers of a client use that may reach only the topics of the scope."""
        return replace(self, jobs=self.queue.within(scope))
