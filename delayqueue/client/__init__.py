"""What a Python program talks to the server with: Client, and AsyncClient for asyncio."""

from delayqueue.client.aio import AsyncClient
from delayqueue.client.blocking import Client
from delayqueue.client.calls import TransportError
from delayqueue.client.jobs import (
    Attempt,
    Forecast,
    Job,
    JobDetails,
    Outcome,
    Page,
    ReservedJob,
    TakenJob,
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

__all__ = [
    "AsyncClient",
    "Attempt",
    "Client",
    "Forbidden",
    "Forecast",
    "Invalid",
    "Job",
    "JobDetails",
    "JobExists",
    "NoSuchJob",
    "Outcome",
    "Page",
    "QueueError",
    "ReservedJob",
    "StaleReceipt",
    "TakenJob",
    "TooLarge",
    "TooMany",
    "TopicCounts",
    "TransportError",
    "Unauthorized",
    "Unavailable",
    "WrongState",
]
