"""The Python client: Client, and AsyncClient for asyncio."""

from importlib import import_module
from typing import TYPE_CHECKING

from delayqueue.client.answers import (
    Access,
    Attempt,
    Attention,
    Calls,
    DeadLetterGroup,
    DeadLetters,
    FailedCall,
    Findings,
    Forecast,
    FoundJob,
    History,
    HistoryMark,
    JobDetails,
    Limits,
    Occurrence,
    Outcome,
    Page,
    ReservedJob,
    Result,
    Schedule,
    ServerStats,
    Stats,
    StoreStats,
    Subscriber,
    TakenJob,
    TopicCounts,
    Trial,
)
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
