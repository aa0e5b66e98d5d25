"""A set of members that can be waited for."""

import asyncio
from collections.abc import Iterator
from typing import Generic, TypeVar

Member = TypeVar("Member")


class Group(Generic[Member]):
    """A set with emptied(), which waits until it is empty."""

    def __init__(self) -> None:
        self._members: set[Member] = set()
        self._is_empty = asyncio.Event()
        self._is_empty.set()

    def __iter__(self) -> Iterator[Member]:
        """The present members; the set may change meanwhile."""
        return iter(list(self._members))

    def __len__(self) -> int:
        """How many members there are."""
        return len(self._members)

    def add(self, member: Member) -> None:
        """Add a member."""
        self._members.add(member)
        self._is_empty.clear()

    def discard(self, member: Member) -> None:
        """Remove a member, if it is there."""
        self._members.discard(member)
        if not self._members:
            self._is_empty.set()

    async def emptied(self) -> None:
        """Wait until the set is empty."""
        await self._is_empty.wait()
