"""The verbs, which both clients have."""

from __future__ import annotations

from typing import Any

from delayqueue.client.api_request import give_methods
from delayqueue.client.job_verbs import JobVerbs
from delayqueue.client.pushes import PushVerbs
from delayqueue.client.schedules import ScheduleVerbs
from delayqueue.client.servers import ServerVerbs
from delayqueue.client.subscribers import SubscriberVerbs
from delayqueue.client.topics import TopicVerbs


class Verbs(PushVerbs, JobVerbs, TopicVerbs, SubscriberVerbs, ScheduleVerbs, ServerVerbs):
    """The methods of Client and AsyncClient. They raise subclasses of QueueError, and TransportError.

    If a method takes a job, an id works, too; a ReservedJob brings its receipt, so that a late worker changes nothing.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        give_methods(cls)
