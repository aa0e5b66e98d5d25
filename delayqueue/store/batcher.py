"""Batching without a timer: requests that arrive while calls are in flight share the next one."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import Any, Generic, TypeVar

from delayqueue.errors import Unavailable
from delayqueue.store.bucket.replies import Reply
from delayqueue.store.servers.pipeline import AT_A_TIME
from delayqueue.store.types import Change
from delayqueue.store.verbs import Verb

# A call with this many items takes no further request: about 3 ms of the store's time.
BATCH_LIMIT = 500
# Nor does a request join a call whose items would then exceed this: about 15 ms.
BATCH_BYTES = 4 * 1024 * 1024

# A request that has waited this long behind a failing call fails, too: the next call would take as long again.
PATIENCE_S = 0.5

Item = TypeVar("Item")
Result = TypeVar("Result")


class VerbRequest(asyncio.Future[Any], Generic[Item, Result]):
    """Items of one request, and the future of what `read` makes of their results, or of the error that it raises.

    `lost` is the result of items for which the store fails after others were done, None = the request fails.
    """

    __slots__ = ("left", "lost", "read", "results", "since")

    def __init__(
        self,
        items: Sequence[Item],
        lost: Result | None,
        read: Callable[[Sequence[Result]], Any],
    ) -> None:
        super().__init__()
        self.left = items  # those without a result so far
        self.lost = lost
        self.read = read
        self.results: Sequence[Result] = ()
        self.since = monotonic()

    def add(self, results: Sequence[Result]) -> bool:
        """Add the results of the next items; returns whether all have one now."""
        self.left = self.left[len(results) :]
        if self.results:
            results = [*self.results, *results]
        if self.left:
            self.results = results
            return False
        if not self.done():
            try:
                self.set_result(self.read(results))
            except Exception as error:
                self.set_exception(error)
        return True

    def fail(self, error: BaseException) -> None:
        """There are no further results."""
        if self.results and self.lost is not None and isinstance(error, Unavailable):
            self.add([self.lost] * len(self.left))
        elif not self.done():
            self.set_exception(error)


class Batcher(Generic[Item, Result]):
    """Joins concurrent requests for a verb in a bucket into calls, with at most AT_A_TIME of them in flight.

    If a call fails, every request in it gets the error. If an item cannot be encoded as UTF-8, so that nothing was
    sent, only its own request fails. Cancelling a request does not stop its call. `notify` is called with each
    call's change.
    """

    def __init__(
        self,
        verb: Verb[Item, Result],
        bucket: int,
        call: Callable[[Sequence[Any]], asyncio.Future[Reply]],
        notify: Callable[[int, Change], None],
    ) -> None:
        self._verb = verb
        self._bucket = bucket
        self._call = call
        self._notify = notify
        self._loop = asyncio.get_running_loop()
        self._waiting: list[VerbRequest[Item, Result]] = []
        self._piece = sys.maxsize  # items per call: about as many as one can do
        self._free = AT_A_TIME  # further calls that may begin

    def submit(self, request: VerbRequest[Item, Result]) -> None:
        """Send its items with the next call: after this turn of the loop if one may begin, else after one in flight.

        Requests of this turn go with the same call.
        """
        if self._free and not self._waiting:
            self._loop.call_soon(self._begin)
        self._waiting.append(request)

    def fail_waiting(self, error: Exception) -> None:
        """Let requests that wait for a call fail."""
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            request.fail(error)

    def _begin(self) -> None:
        """Begin as many calls as are needed, and may be in flight."""
        while self._free and self._waiting:
            self._free -= 1
            requests, items = self._take()
            self._send(requests, items[: self._piece])

    def _take(self) -> tuple[list[VerbRequest[Item, Result]], list[Item]]:
        """The requests of the next call, and their items."""
        items: list[Item] = []
        limit, size_bytes = min(BATCH_LIMIT, self._piece), 0
        large_part = self._verb.large_part
        for number, request in enumerate(self._waiting):
            if large_part is not None:
                for item in request.left:
                    size_bytes += len(large_part(item))
            if number and (len(items) >= limit or size_bytes > BATCH_BYTES):
                taken, self._waiting = self._waiting[:number], self._waiting[number:]
                return taken, items
            items += request.left
        taken, self._waiting = self._waiting, []
        return taken, items

    def _send(self, requests: list[VerbRequest[Item, Result]], items: Sequence[Item]) -> None:
        try:
            call = self._call(self._verb.pack(items))
        except Exception as error:
            self._end(requests, len(items), error)
        else:
            call.add_done_callback(partial(self._answered, requests, items))

    def _answered(
        self,
        requests: list[VerbRequest[Item, Result]],
        items: Sequence[Item],
        call: asyncio.Future[Reply],
    ) -> None:
        try:
            outcome: Sequence[Result] | BaseException = self._results(items, call.result())
        except BaseException as error:  # CancelledError as well: the loop ends
            outcome = error
        self._end(requests, len(items), outcome)

    def _results(self, items: Sequence[Item], reply: Reply) -> Sequence[Result]:
        if reply.change.is_news:
            self._notify(self._bucket, reply.change)
        return self._verb.read(items, reply)

    def _end(
        self,
        requests: list[VerbRequest[Item, Result]],
        size: int,
        outcome: Sequence[Result] | BaseException,
    ) -> None:
        """A call for `size` items of the requests has ended."""
        self._free += 1
        if isinstance(outcome, BaseException):
            self._fail(requests, outcome)
        else:
            done = len(outcome)
            # what it did not do was packed for nothing: the next call is given a few items more than this one did
            if done < size:
                self._piece = done + done // 8 + 1
            elif size >= self._piece:
                self._piece *= 2
            at, unfinished = 0, []
            for request in requests:
                upto = at + len(request.left)
                if not request.add(outcome[at:upto]):
                    unfinished.append(request)
                at = upto
            self._waiting[:0] = unfinished
        if self._waiting:
            self._loop.call_soon(self._begin)

    def _fail(self, requests: list[VerbRequest[Item, Result]], error: BaseException) -> None:
        if isinstance(error, UnicodeEncodeError):
            bad = [request for request in requests if not self._can_be_sent(request)] or requests
            self._waiting[:0] = [request for request in requests if request not in bad]
            requests = bad
        if isinstance(error, Unavailable):
            requests += self._take_impatient()
        for request in requests:
            request.fail(error)

    def _can_be_sent(self, request: VerbRequest[Item, Result]) -> bool:
        try:
            for word in self._verb.pack(request.left):
                if isinstance(word, str):
                    word.encode()
        except UnicodeEncodeError:
            return False
        return True

    def _take_impatient(self) -> list[VerbRequest[Item, Result]]:
        last = monotonic() - PATIENCE_S
        taken = [request for request in self._waiting if request.since < last]
        self._waiting = [request for request in self._waiting if request.since >= last]
        return taken
