"""What both clients have: their verbs, and how they reach the server."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from delayqueue.client.address import DEFAULT_RETRIES, DEFAULT_TIMEOUT_S, ServerAddress
from delayqueue.client.calls import TransportError, give_methods
from delayqueue.client.job_verbs import JobVerbs
from delayqueue.client.jobs import seconds
from delayqueue.client.schedules import ScheduleVerbs
from delayqueue.client.servers import ServerVerbs
from delayqueue.client.subscribers import SubscriberVerbs
from delayqueue.client.topics import TopicVerbs

if TYPE_CHECKING:
    from delayqueue.client.jobs import Seconds


class Verbs(JobVerbs, TopicVerbs, SubscriberVerbs, ScheduleVerbs, ServerVerbs):
    """The methods of Client and AsyncClient. They raise subclasses of QueueError, and TransportError.

    If a method takes a job, an id works, too; a ReservedJob brings its receipt, so that a late worker changes nothing.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        give_methods(cls)

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        timeout: Seconds = DEFAULT_TIMEOUT_S,
        retries: int = DEFAULT_RETRIES,
    ) -> None:
        self._address = ServerAddress.of(url, token)
        self._timeout_s = seconds(timeout)
        self._retries = retries
        self._tls = self._address.tls()
        self._idle: deque[Any] = deque()  # connections

    def _failure(self, error: Exception) -> TransportError:
        return TransportError(f"{self._address}: {str(error) or type(error).__name__}")
