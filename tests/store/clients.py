"""Clients of redis-py that end with the connections of the stores over them: tests close a client, and no store."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from weakref import WeakKeyDictionary

import pytest
from redis.asyncio import ConnectionPool, Redis

from delayqueue.store import server
from delayqueue.store.connection import Links

OPENED: Final = WeakKeyDictionary[ConnectionPool, list[Links]]()


class _Remembered(Links):
    def __init__(self, pool: ConnectionPool, most: int, wait_s: float) -> None:
        super().__init__(pool, most, wait_s)
        OPENED.setdefault(pool, []).append(self)


@contextmanager
def remembered_links() -> Iterator[None]:
    """Remember what servers of a store open."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "Links", _Remembered)
        yield


class Client(Redis):
    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        for links in OPENED.pop(self.connection_pool, ()):
            await links.aclose()
        await super().aclose(close_connection_pool)
