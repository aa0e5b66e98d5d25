"""The Python client: Client, and AsyncClient for asyncio."""

from importlib import import_module
from typing import TYPE_CHECKING

from delayqueue.client import answers
from delayqueue.client.answers import *  # noqa: F403  # all that it names
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
    "AsyncClient",
    "Client",
    "Forbidden",
    "Invalid",
    "Job",
    "JobExists",
    "NoSuchJob",
    "Payload",
    "QueueError",
    "StaleReceipt",
    "TooLarge",
    "TooMany",
    "TransportError",
    "Unauthorized",
    "Unavailable",
    "WrongState",
]
__all__ += answers.__all__


def __getattr__(name: str) -> object:
    """Import AsyncClient on first use, so that programs without asyncio do not wait for its import."""
    if name == "AsyncClient":
        return import_module("delayqueue.client.aio").AsyncClient
    raise AttributeError(f"module {__name__} has no attribute {name}")
