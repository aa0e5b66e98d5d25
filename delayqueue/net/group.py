"""Those that are there, until none is."""

import asyncio
from collections.abc import Iterator
from typing import Generic, TypeVar

Member = TypeVar("Member")


class Group(Generic[Member]):
    """A set that can be waited for."""

    def __init__(self) -> None:
        self._members: set[Member] = set()
        self._is_empty = asyncio.Event()
        self._is_empty.set()

    def __iter__(self) -> Iterator[Member]:
        """Those that are there now, whoever comes and goes meanwhile."""
        return iter(list(self._members))

    def add(self, member: Member) -> None:
        """One comes."""
        self._members.add(member)
        self._is_empty.clear()

    def discard(self, member: Member) -> None:
        """One goes, if it was there."""
        self._members.discard(member)
        if not self._members:
            self._is_empty.set()

    async def emptied(self) -> None:
        """Wait until none is there."""
        await self._is_empty.wait()
