"""The Python client: Client, and AsyncClient for asyncio."""

from importlib import import_module
from typing import TYPE_CHECKING

from delayqueue.client.blocking import Client
from delayqueue.client.calls import TransportError
from delayqueue.client.jobs import (
    Attempt,
    Job,
    JobDetails,
    Outcome,
    Page,
    ReservedJob,
    Result,
    TakenJob,
)
from delayqueue.client.payload import Payload
from delayqueue.client.schedules import Occurrence, Schedule
from delayqueue.client.servers import (
    Access,
    Attention,
    History,
    HistoryMark,
    ServerStats,
    Stats,
    StoreStats,
)
from delayqueue.client.subscribers import Calls, FailedCall, Subscriber, Trial
from delayqueue.client.topics import (
    DeadLetterGroup,
    DeadLetters,
    Findings,
    Forecast,
    FoundJob,
    Limits,
    TopicCounts,
)
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

if TYPE_CHECKING:
    from delayqueue.client.aio import AsyncClient

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
    "Invalid",
    "Job",
    "JobDetails",
    "JobExists",
    "Limits",
    "NoSuchJob",
    "Occurrence",
    "Outcome",
    "Page",
    "Payload",
    "QueueError",
    "ReservedJob",
    "Result",
    "Schedule",
    "ServerStats",
    "StaleReceipt",
    "Stats",
    "StoreStats",
    "Subscriber",
    "TakenJob",
    "TooLarge",
    "TooMany",
    "TopicCounts",
    "TransportError",
    "Trial",
    "Unauthorized",
    "Unavailable",
    "WrongState",
]


def __getattr__(name: str) -> object:
    """Import AsyncClient on first use, so that programs without asyncio do not wait for its import."""
    if name == "AsyncClient":
        return import_module("delayqueue.client.aio").AsyncClient
    raise AttributeError(f"module {__name__} has no attribute {name}")
