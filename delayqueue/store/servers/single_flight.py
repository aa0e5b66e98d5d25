"""What many calls find missing at once is fetched once."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any


class SingleFlight:
    """For each key at most one piece of work under way: who wants it meanwhile awaits that one."""

    def __init__(self, name: str) -> None:
        """`name` is that of the tasks."""
        self._name = name
        self._under_way: dict[Hashable, asyncio.Task[None]] = {}

    async def do(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Have it done. Raises what it raises; who is cancelled leaves it to the others."""
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = asyncio.create_task(work(), name=self._name)
            task.add_done_callback(lambda _: self._under_way.pop(key))
        await asyncio.shield(task)
