"""The Python client: Client, and AsyncClient for asyncio."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from delayqueue.client.aio import AsyncClient
    from delayqueue.client.answers import *
    from delayqueue.client.blocking import Client
    from delayqueue.client.calls import TransportError
    from delayqueue.client.jobs import Job
    from delayqueue.client.payload import Payload
    from delayqueue.errors import (
        Forbidden,
        Invalid,
        JobExists,
        NoSuchJob,
        QueueError,
        StaleReceipt,
        TooLarge,
        TooMany,
        Unauthorized,
        Unavailable,
        WrongState,
    )

__all__ = [
    "Access",
    "AsyncClient",
    "Attempt",
    "Attention",
    "Calls",
    "Client",
    "DeadLetterGroup",
    "DeadLetters",
    "FailedCall",
    "Findings",
    "Forbidden",
    "Forecast",
    "FoundJob",
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
    "QueueError",
    "ReservedJob",
    "Result",
    "Schedule",
    "SchedulePage",
    "ServerStats",
    "StaleReceipt",
    "Stats",
    "StoreStats",
    "Subscriber",
    "SubscriberPage",
    "TakenJob",
    "TooLarge",
    "TooMany",
    "TopicCounts",
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
_HOMES = ("errors", "client.calls", "client.jobs", "client.payload", "client.answers")
_OF_CLIENTS = {"Client": "client.blocking", "AsyncClient": "client.aio"}


def __getattr__(name: str) -> object:
    """Import on first use: the command line, which only sends calls, does not wait for the verbs and the answers."""
    if name in __all__:
        homes = [_OF_CLIENTS[name]] if name in _OF_CLIENTS else _HOMES
        for module in map(import_module, (f"delayqueue.{home}" for home in homes)):
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module {__name__} has no attribute {name}")


def __dir__() -> list[str]:
    """With the names that are imported on first use."""
    return sorted({*globals(), *__all__})
