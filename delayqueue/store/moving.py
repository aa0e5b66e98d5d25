"""Calls while jobs move between buckets: each first brings the jobs that it names to its bucket."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from delayqueue.errors import Unavailable
from delayqueue.store.batcher import Batcher, VerbRequest
from delayqueue.store.bucket.recovery import LayoutChanged
from delayqueue.store.bucket.replies import Reply
from delayqueue.store.types import Change
from delayqueue.store.verbs import Verb
from delayqueue.tasks import Tasks

Item = TypeVar("Item")
Result = TypeVar("Result")
Fetch = Callable[[int, Sequence[str]], Awaitable[set[str]]]


class MovingBatcher(Batcher[Item, Result]):
    """A Batcher that fetches the jobs of a call.

    `fetch(bucket, ids)` returns the ids whose former bucket does not answer, or raises LayoutChanged.
    """

    def __init__(
        self,
        verb: Verb[Item, Result],
        bucket: int,
        call: Callable[[Sequence[Any]], asyncio.Future[Reply]],
        notify: Callable[[int, Change], None],
        reroute: Callable[[Sequence[VerbRequest[Item, Result]]], None],
        fetch: Fetch,
    ) -> None:
        super().__init__(verb, bucket, call, notify, reroute)
        self._fetch = fetch
        self._tasks = Tasks(f"{verb.script} of jobs that move")

    def _send(self, requests: list[VerbRequest[Item, Result]], items: Sequence[Item]) -> None:
        self._tasks.start(self._fetch_and_send(requests, items))

    async def _fetch_and_send(
        self, requests: list[VerbRequest[Item, Result]], items: Sequence[Item]
    ) -> None:
        verb = self._verb
        try:
            away = await self._fetch(
                self._bucket, [one for item in items for one in verb.ids(item)]
            )
            if self._is_closed:
                self._end(requests, len(items), LayoutChanged())
                return
            missing = [not away.isdisjoint(verb.ids(item)) for item in items]
            if not any(missing):
                super()._send(requests, items)
                return
            if verb.lost is None:
                self._end_those_with(away, requests)
                self._free += 1
                self._loop.call_soon(self._begin)
                return
            outcome: Sequence[Result] | BaseException = await self._of_others(
                items, missing, verb.lost
            )
        except BaseException as error:
            outcome = error
        self._end(requests, len(items), outcome)

    def _end_those_with(self, away: set[str], requests: list[VerbRequest[Item, Result]]) -> None:
        """Let requests for these ids fail; the others are sent again."""
        others = []
        for request in requests:
            if all(away.isdisjoint(self._verb.ids(item)) for item in request.left):
                others.append(request)
            else:
                request.fail(Unavailable())
        self._wait_again(others)

    async def _of_others(
        self, items: Sequence[Item], missing: Sequence[bool], lost: Result
    ) -> list[Result]:
        """The results of the first items; `lost` for those that are missing."""
        here = [item for item, is_missing in zip(items, missing, strict=True) if not is_missing]
        found = deque[Result]()
        if here:
            found += self._results(here, await self._call(self._verb.pack(here)))
        results: list[Result] = []
        for is_missing in missing:
            if not is_missing and not found:
                break
            results.append(lost if is_missing else found.popleft())
        return results
