"""Reserves jobs of one bucket for the lines of polls that want some, with one call in flight."""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple

from delayqueue.engine.line import Line
from delayqueue.errors import Unavailable
from delayqueue.job import Reserved
from delayqueue.store.store import Store
from delayqueue.store.types import Demand, Stir

log = logging.getLogger(__name__)

JOBS_PER_DEMAND = 1000
DEMANDS_PER_CALL = 200
RETRY_S = 0.2  # until the next try when the store has failed
SLOW_S = 0.1  # a call that takes longer does not keep its lines from asking other buckets any more


class Request(NamedTuple):
    """What one line asks of the bucket in one call."""

    line: Line
    wanted: int
    spare: int  # jobs that the bucket may have beyond `wanted`
    last_number: int  # the last poll that this asks for


class Dispatcher:
    """Asks its bucket on behalf of lines; `hand_out` takes the jobs, `freed` hears that a line's call is over.

    `stir` hears when a topic that its rate holds back may go on. A call that fails, for whatever reason, is told to the
    polls that it asked for, and the bucket is asked again.
    """

    def __init__(
        self,
        bucket: int,
        store: Store,
        hand_out: Callable[[Line, list[Reserved]], None],
        freed: Callable[[Line], None],
        stir: Callable[[int, Stir], None],
    ) -> None:
        self._bucket = bucket
        self._store = store
        self._hand_out = hand_out
        self._freed = freed
        self._stir = stir
        self._hinted: dict[Line, None] = {}
        self._task: asyncio.Task[None] | None = None
        self._claims: list[Request] = []  # what counts as asked for
        self._slow = False  # its last call took long or failed: nobody counts on the next one

    def hint(self, line: Line, count: int) -> None:
        """The bucket may have `count` more jobs for this line."""
        line.hints[self._bucket] += count
        if line.hints[self._bucket] > 0 and line.wanted > line.asked:
            self._hinted[line] = None
            if self._task is None:
                self._task = asyncio.create_task(self._run(), name=f"dispatcher {self._bucket}")

    async def close(self) -> None:
        """Wait for the call in flight."""
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        try:
            while requests := self._next_requests():
                await self._ask(requests)
        finally:
            self._task = None

    def _next_requests(self) -> list[Request]:
        hinted, self._hinted = self._hinted, {}
        lines = [line for line in hinted if line.wanted > line.asked]
        lines.sort(key=lambda line: line.first_number)
        self._hinted.update(dict.fromkeys(lines[DEMANDS_PER_CALL:]))
        return [self._request(line) for line in lines[:DEMANDS_PER_CALL]]

    def _request(self, line: Line) -> Request:
        hint = line.hints[self._bucket]
        wanted = min(hint, line.wanted - line.asked, JOBS_PER_DEMAND)
        line.hints[self._bucket] = 0
        request = Request(line, wanted, hint - wanted, line.last_number)
        if not self._slow:
            line.asked += wanted
            self._claims.append(request)
        return request

    async def _ask(self, requests: list[Request]) -> None:
        demands = [Demand(request.line.topics, request.wanted) for request in requests]
        slow = asyncio.get_running_loop().call_later(SLOW_S, self._let_go)
        try:
            popped = await self._store.pop(self._bucket, demands)
        except Exception as error:
            if not isinstance(error, Unavailable):
                log.exception("jobs cannot be taken from bucket %d", self._bucket + 1)
            self._let_go()
            for request in requests:
                self._fail(request)
            for line in (
                self._hinted
            ):  # they came during the call; behind another one they would wait twice as long
                line.note_failure(self._bucket)
            await asyncio.sleep(RETRY_S)
            return
        finally:
            slow.cancel()
        self._slow = False
        self._release()
        for place, (request, jobs) in enumerate(zip(requests, popped.jobs, strict=True)):
            self._settle(request, jobs, complete=place < popped.complete)
        self._stir(self._bucket, popped.stir)

    def _let_go(self) -> None:
        """Other buckets may be asked for what this one takes long to bring; what it brings too much is put back."""
        self._slow = True
        for request in self._release():
            self._freed(request.line)

    def _release(self) -> list[Request]:
        claims, self._claims = self._claims, []
        for request in claims:
            request.line.asked -= request.wanted
        return claims

    def _settle(self, request: Request, jobs: list[Reserved], *, complete: bool) -> None:
        line = request.line
        self._hand_out(line, jobs)
        if len(jobs) < request.wanted and complete:
            line.note_dry(self._bucket, request.last_number)
        else:
            line.hints[self._bucket] += request.wanted - len(jobs) + request.spare
            if line.fresh:  # older polls took what these came for: there may be more
                line.hints[self._bucket] = max(line.hints[self._bucket], 1)
        self._freed(line)

    def _fail(self, request: Request) -> None:
        line = request.line
        line.hints[self._bucket] += request.wanted + request.spare
        line.note_failure(self._bucket)
        self._freed(line)
