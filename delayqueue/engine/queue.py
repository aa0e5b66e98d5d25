"""The delay queue inside one server process: the verbs that HTTP and push delivery call."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import TypeVar

from delayqueue.engine.batcher import Batcher
from delayqueue.engine.timer import INTERVAL_S, Timer
from delayqueue.engine.waiters import Waiters
from delayqueue.engine.wakeups import Wakeups
from delayqueue.errors import OF_CODE, Code
from delayqueue.job import Job, JobView, Reserved
from delayqueue.receipt import nonce_of
from delayqueue.store.store import Ending, Store, Ticked

Item = TypeVar("Item")
Result = TypeVar("Result")

READY_TICKS = 5  # a timer that has not ticked for so many intervals is not ready


class DelayQueue:
    """Every verb, for this process. Many-id verbs return one code an id; single ones raise what the code means.

    All raise Unavailable where the store does not answer.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        buckets = range(store.bucket_count)
        self._waiters = Waiters(store)
        self._timers = [Timer(bucket, store, self._ticked) for bucket in buckets]
        self._wakeups = Wakeups(store, self._waiters.wake, self._waiters.resync)
        self._pushes = [Batcher(self._pusher(bucket), f"push {bucket}") for bucket in buckets]
        self._finishes = _batchers(store, store.finish, "finish")
        self._deletes = _batchers(store, store.delete, "delete")
        self._gets = _batchers(store, store.get, "get")

    async def push(self, job: Job) -> None:
        """Add a job, or replace the one of that id. JobExists where `if_exists` is `fail`."""
        bucket = self._store.bucket_of(job.id)
        codes = await self._pushes[bucket].submit((job,))
        raise_for(codes[0])

    async def push_many(self, jobs: Sequence[Job]) -> list[int]:
        """Add many jobs; a code for each."""
        return await self._spread(self._pushes, jobs, [job.id for job in jobs])

    async def pop(self, topics: tuple[str, ...], count: int, wait_s: float) -> list[Reserved]:
        """Reserve up to `count` ready jobs of the topics, in their order; wait up to `wait_s` for the first."""
        return await self._waiters.pop(topics, count, wait_s)

    def put_back(self, jobs: Iterable[Reserved]) -> None:
        """Undo reservations whose client is gone: they are ready again at once, the attempt uncounted."""
        self._waiters.put_back(jobs)

    async def finish(self, ids: Sequence[str], receipt: str = "", message: str = "") -> list[int]:
        """End jobs whose work is done; a code for each. With a receipt only that reservation."""
        return await self._spread(self._finishes, _endings(ids, receipt, message), ids)

    async def delete(self, ids: Sequence[str], receipt: str = "", message: str = "") -> list[int]:
        """End jobs that are not wanted any more; a code for each."""
        return await self._spread(self._deletes, _endings(ids, receipt, message), ids)

    async def get(self, ids: Sequence[str]) -> list[JobView | None]:
        """All that is known of jobs; None for an unknown id."""
        return await self._spread(self._gets, ids, ids)

    @property
    def waiting_polls(self) -> int:
        """How many polls wait in this process."""
        return self._waiters.waiting

    def stale_buckets(self) -> list[int]:
        """Buckets whose timer has not ticked of late: their store does not answer."""
        oldest = asyncio.get_running_loop().time() - READY_TICKS * INTERVAL_S
        return [
            bucket
            for bucket, timer in enumerate(self._timers)
            if timer.last_tick_at is None or timer.last_tick_at < oldest
        ]

    def background(self) -> dict[str, Callable[[], Coroutine[None, None, None]]]:
        """The loops that must run for the queue to live, by name; the server owns the tasks."""
        loops: dict[str, Callable[[], Coroutine[None, None, None]]] = {"wakeups": self._wakeups.run}
        for bucket, timer in enumerate(self._timers):
            loops[f"timer {bucket}"] = timer.run
        return loops

    async def close(self) -> None:
        """Answer every waiting poll with nothing; nothing that was reserved for one stays reserved."""
        await self._waiters.close()

    def _pusher(self, bucket: int) -> Callable[[list[Job]], Awaitable[list[int]]]:
        async def push(jobs: list[Job]) -> list[int]:
            pushed = await self._store.push(bucket, jobs)
            if pushed.next_due_ms is not None:
                self._timers[bucket].arm(pushed.next_due_ms)
            for topic, arrived in pushed.ready:
                self._waiters.wake(bucket, topic, arrived)
            return pushed.codes

        return push

    def _ticked(self, bucket: int, ticked: Ticked) -> None:
        for topic, arrived in ticked.ready:
            self._waiters.wake(bucket, topic, arrived)

    async def _spread(
        self, batchers: list[Batcher[Item, Result]], items: Sequence[Item], ids: Sequence[str]
    ) -> list[Result]:
        """Send each item to the batcher of its id's bucket; the results in the order of the items."""
        if not ids:
            return []
        if len(batchers) == 1:
            return list(await batchers[0].submit(items))
        places: dict[int, list[int]] = {}
        for place, job_id in enumerate(ids):
            places.setdefault(self._store.bucket_of(job_id), []).append(place)
        answers = await asyncio.gather(
            *(batchers[bucket].submit([items[i] for i in mine]) for bucket, mine in places.items())
        )
        results = {
            place: result
            for mine, answer in zip(places.values(), answers, strict=True)
            for place, result in zip(mine, answer, strict=True)
        }
        return [results[place] for place in range(len(ids))]


def raise_for(code: int) -> None:
    """Raise the error that a script's code stands for."""
    if code != Code.OK:
        raise OF_CODE[Code(code)]


def _endings(ids: Sequence[str], receipt: str, message: str) -> list[Ending]:
    return [Ending(i, nonce_of(receipt, i) if receipt else "", message) for i in ids]


def _batchers(
    store: Store, call: Callable[[int, list[Item]], Awaitable[Sequence[Result]]], name: str
) -> list[Batcher[Item, Result]]:
    def of(bucket: int) -> Callable[[list[Item]], Awaitable[Sequence[Result]]]:
        return lambda items: call(bucket, items)

    return [Batcher(of(bucket), f"{name} {bucket}") for bucket in range(store.bucket_count)]
