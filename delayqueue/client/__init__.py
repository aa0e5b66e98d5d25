"""The Python client: Client, and AsyncClient for asyncio."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from delayqueue.answers.jobs import (
        Attempt,
        Findings,
        FoundJob,
        HeldBy,
        JobCall,
        JobDetails,
        Outcome,
        Page,
        Progress,
        ReservedJob,
        SubscriberResult,
        TakenJob,
    )
    from delayqueue.answers.schedules import Occurrence, Schedule, SchedulePage
    from delayqueue.answers.servers import (
        Access,
        Attention,
        History,
        HistoryMark,
        HostCalls,
        OutboxStats,
        ServerStats,
        Stats,
        StoreStats,
        Trouble,
        WorkerJob,
        WorkerStats,
    )
    from delayqueue.answers.subscribers import (
        CallCounts,
        FailedCall,
        Subscriber,
        SubscriberPage,
        Trial,
    )
    from delayqueue.answers.topics import (
        DeadLetterGroup,
        DeadLetters,
        Forecast,
        GroupCounts,
        Limits,
        Note,
        TopicCounts,
        TopicGroups,
        TopicRates,
    )
    from delayqueue.client.aio import AsyncClient
    from delayqueue.client.api_request import TransportError
    from delayqueue.client.blocking import Client
    from delayqueue.client.payload import Payload
    from delayqueue.client.pushes import Job
    from delayqueue.errors import (
        Forbidden,
        Invalid,
        JobExists,
        NoSuchJob,
        QueueError,
        StaleReceipt,
        TooLarge,
        TooMany,
        TopicFull,
        Unauthorized,
        Unavailable,
        WrongState,
    )

    Calls = CallCounts
    Result = SubscriberResult

__all__ = [
    "Access",
    "AsyncClient",
    "Attempt",
    "Attention",
    "CallCounts",
    "Client",
    "DeadLetterGroup",
    "DeadLetters",
    "FailedCall",
    "Findings",
    "Forbidden",
    "Forecast",
    "FoundJob",
    "GroupCounts",
    "HeldBy",
    "History",
    "HistoryMark",
    "HostCalls",
    "Invalid",
    "Job",
    "JobCall",
    "JobDetails",
    "JobExists",
    "Limits",
    "NoSuchJob",
    "Note",
    "Occurrence",
    "OutboxStats",
    "Outcome",
    "Page",
    "Payload",
    "Progress",
    "QueueError",
    "ReservedJob",
    "Schedule",
    "SchedulePage",
    "ServerStats",
    "StaleReceipt",
    "Stats",
    "StoreStats",
    "Subscriber",
    "SubscriberPage",
    "SubscriberResult",
    "TakenJob",
    "TooLarge",
    "TooMany",
    "TopicCounts",
    "TopicFull",
    "TopicGroups",
    "TopicRates",
    "TransportError",
    "Trial",
    "Trouble",
    "Unauthorized",
    "Unavailable",
    "WorkerJob",
    "WorkerStats",
    "WrongState",
]
# where they are; asyncio is imported for AsyncClient only
_HOMES = (
    *("errors", "client.api_request", "client.payload", "client.pushes"),
    *("answers.jobs", "answers.topics", "answers.subscribers", "answers.schedules"),
    "answers.servers",
)
_OF_CLIENTS = {"Client": "client.blocking", "AsyncClient": "client.aio"}
# names of version 0.1: they can be imported until the next minor version
_FORMER = {"Calls": "CallCounts", "Result": "SubscriberResult"}


def __getattr__(name: str) -> object:
    """Import on first use: the command line, which only sends calls, does not wait for the verbs and the answers."""
    wanted = _FORMER.get(name, name)
    if wanted in __all__:
        homes = [_OF_CLIENTS[wanted]] if wanted in _OF_CLIENTS else _HOMES
        for module in map(import_module, (f"delayqueue.{home}" for home in homes)):
            if hasattr(module, wanted):
                return getattr(module, wanted)
    raise AttributeError(f"module {__name__} has no attribute {name}")


def __dir__() -> list[str]:
    """With the names that are imported on first use."""
    return sorted({*globals(), *__all__})
