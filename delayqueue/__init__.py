"""A delay queue server that speaks HTTP and keeps its jobs in Redis or Valkey, and its clients for Python."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from delayqueue.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Load the clients when somebody asks for them: the server does without."""
    if name in __all__:
        from delayqueue import client  # noqa: PLC0415

        return getattr(client, name)
    raise AttributeError(f"module {__name__} has no attribute {name}")
