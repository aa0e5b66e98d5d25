"""The verbs, which both clients have."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

from delayqueue.answers.servers import Access, History, Stats, WorkerStats
from delayqueue.client.api_request import ApiRequest, give_methods, verb
from delayqueue.client.fields import each, nothing, read
from delayqueue.client.job_verbs import JobVerbs
from delayqueue.client.jobs import given
from delayqueue.client.pushes import PushVerbs
from delayqueue.client.schedules import ScheduleVerbs
from delayqueue.client.subscribers import SubscriberVerbs
from delayqueue.client.topics import TopicVerbs

Span = Literal["3h", "2d", "30d"]  # in steps of a minute, 10 minutes, an hour


class ServerVerbs:
    """The endpoints /accept-store, /history, /stats, /whoami and /workers."""

    @verb
    def history(self, topic: str | None = None, *, span: Span | None = None) -> ApiRequest[History]:
        """Return the history of a topic, or of all topics together, over the last 3 hours or `span`."""
        return ApiRequest("/history", given(**locals()), partial(read, History), repeatable=True)

    @verb
    def stats(self, *, counts: bool | None = None) -> ApiRequest[Stats]:
        """Return an overview of all topics, the server processes and the store.

        With `counts=False` the topics are not counted, and what takes that is 0, None or [].
        """
        return ApiRequest("/stats", given(counts=counts), partial(read, Stats), repeatable=True)

    @verb
    def workers(self) -> ApiRequest[list[WorkerStats]]:
        """Return the workers that send their names, first those that are gone with reserved jobs."""
        return ApiRequest("/workers", {}, partial(each, WorkerStats), repeatable=True)

    @verb
    def accept_store(self) -> ApiRequest[None]:
        """Confirm that an emptied or replaced store is a new one."""
        return ApiRequest("/accept-store", {}, nothing, repeatable=True)

    @verb
    def whoami(self, *, outbox: Mapping[str, Any] | None = None) -> ApiRequest[Access]:
        """Return what the client's token allows. A relay reports the state of its `outbox`, for stats()."""
        return ApiRequest("/whoami", given(outbox=outbox), partial(read, Access), repeatable=True)


class Verbs(PushVerbs, JobVerbs, TopicVerbs, SubscriberVerbs, ScheduleVerbs, ServerVerbs):
    """The methods of Client and AsyncClient. They raise subclasses of QueueError, and TransportError.

    If a method takes a job, an id works, too; a ReservedJob brings its receipt, so that a late worker changes nothing.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        give_methods(cls)
