"""Lets a load through, or holds it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class PauseGate:
    """Clients pass it before each step."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()
        self._idle = asyncio.Event()
        self._busy = 0

    @asynccontextmanager
    async def passed(self) -> AsyncIterator[None]:
        """Take one step, once the gate is open."""
        await self._open.wait()
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            self._idle.set()

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """No client passes while this runs, and all have completed their steps."""
        self._open.clear()
        try:
            while self._busy:
                self._idle.clear()
                await self._idle.wait()
            yield
        finally:
            self._open.set()
