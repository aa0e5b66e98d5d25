"""A delay queue server that speaks HTTP and keeps its jobs in Redis or Valkey, and its client and worker for Python."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from delayqueue.client import AsyncClient, Client
    from delayqueue.worker import Bury, Retry, Worker

__all__ = ["AsyncClient", "Bury", "Client", "Retry", "Worker"]
__version__ = "0.1.0"


def __dir__() -> list[str]:
    """With the names that are imported on first use."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> object:
    """Import the clients and the worker on first use: the server works without them."""
    if name in __all__:
        folder = "client" if name.endswith("Client") else "worker"
        return getattr(import_module(f"delayqueue.{folder}"), name)
    raise AttributeError(f"module {__name__} has no attribute {name}")
