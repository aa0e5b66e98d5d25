"""Clients that send random requests to one or more servers, and tell the shadow what they sent and received."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from faults.attack.job_verbs import JobVerbs
from faults.attack.many_verbs import ManyVerbs
from faults.attack.random_client import Crowd

WEIGHTS: Final = {
    "push": 24,
    "pop": 24,
    "finish": 10,
    "delete": 4,
    "release": 6,
    "touch": 4,
    "bury": 4,
    "kick": 5,
    "kick_some": 1,
    "reschedule": 5,
    "cancel": 1,
    "take": 2,
    "purge": 1,
    "get": 8,
    "list": 3,
    "pause": 1,
    "resume": 2,
    "limit": 1,
    "schedule": 1,
    "show": 1,
}


class PauseGate:
    """Lets a load through, or holds it: clients pass it before each step."""

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


class Attacker(JobVerbs, ManyVerbs):
    """One client, which passes a gate before each step."""

    async def run(self, gate: PauseGate) -> None:
        """Attack until cancelled."""
        while True:
            async with gate.passed():
                [verb] = self.rng.choices(list(WEIGHTS), list(WEIGHTS.values()))
                self.crowd.counts[verb] += 1
                await getattr(self, f"_{verb}")()


async def attack(crowd: Crowd, gate: PauseGate, *, seed: int, clients: int) -> None:
    """Let this many clients attack until cancelled, each with its own seed."""
    async with asyncio.TaskGroup() as group:
        for number in range(clients):
            attacker = Attacker(crowd, random.Random(f"{seed}/{number}"))
            group.create_task(attacker.run(gate))
