"""Batching without a timer: requests that arrive while calls are in flight share the next one."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from delayqueue.domain.access import Scope
from delayqueue.errors import Unavailable
from delayqueue.store.call import ScriptCall
from delayqueue.store.replies import Reply
from delayqueue.store.servers.pipeline import AT_A_TIME
from delayqueue.store.verbs import Verb

if TYPE_CHECKING:
    from delayqueue.store.bucket import Bucket

# A call with this many items takes no further request: about 3 ms of the store's time.
BATCH_LIMIT: Final = 500
# Nor does a request join a call whose items would then exceed this: about 15 ms.
BATCH_BYTES: Final = 4 * 1024 * 1024

# A request that has waited this long behind a failing call fails, too: the next call would take as long again.
PATIENCE_S = 0.5

Item = TypeVar("Item")
Result = TypeVar("Result")


class StoreRequest(asyncio.Future[Any], Generic[Item, Result]):
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
        is_last = len(results) == len(self.left)
        if self.results or not is_last:
            self.left = self.left[len(results) :]
            results = self.results = [*self.results, *results]
        if is_last and not self.done():
            try:
                self.set_result(self.read(results))
            except Exception as error:
                self.set_exception(error)
        return is_last

    def fail(self, error: Exception) -> None:
        """There are no further results."""
        if self.results and self.lost is not None and isinstance(error, Unavailable):
            self.add([self.lost] * len(self.left))
        elif not self.done():
            self.set_exception(error)


class Batcher(Generic[Item, Result]):
    """Joins concurrent requests for a verb in a bucket into calls, with at most AT_A_TIME of them in flight.

    If a call fails, every request in it gets the error. If an item cannot be encoded as UTF-8, so that nothing was
    sent, only its own request fails. Cancelling a request does not stop its call. The store's listeners are told what a
    call has changed.
    """

    def __init__(
        self,
        verb: Verb[Item, Result],
        scope: Scope,
        bucket: "Bucket",
    ) -> None:
        self._verb = verb
        self._scope = scope
        self._bucket = bucket
        self._function = bucket.scripts[verb.script]
        self._loop = asyncio.get_running_loop()
        self._waiting: list[StoreRequest[Item, Result]] = []
        self._piece = sys.maxsize  # items per call: about as many as one can do
        self._free = AT_A_TIME  # further calls that may begin

    def submit(self, request: StoreRequest[Item, Result]) -> None:
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
            requests = self._waiting
            if len(requests) == 1:
                items, self._waiting = requests[0].left, []
            else:
                requests, items = self._take()
            if len(items) > self._piece:
                items = items[: self._piece]
            generation = self._bucket.buckets.layout.generation
            answered = partial(self._answered, requests, items, generation)
            try:
                args = self._verb.pack(items)
            except Exception as error:
                answered(error)
            else:
                self._bucket.send(
                    ScriptCall(self._function, self._bucket, args, self._scope, answered)
                )

    def _take(self) -> tuple[list[StoreRequest[Item, Result]], Sequence[Item]]:
        """The requests of the next call, of several that wait, and their items."""
        items: list[Item] = []
        limit, most_bytes, size_bytes = min(BATCH_LIMIT, self._piece), BATCH_BYTES, 0
        large_part = self._verb.large_part
        for number, request in enumerate(self._waiting):
            if large_part is not None:
                for item in request.left:
                    size_bytes += len(large_part(item))
            if (size_bytes > most_bytes or len(items) >= limit) and number:
                taken, self._waiting = self._waiting[:number], self._waiting[number:]
                return taken, items
            items += request.left
        taken, self._waiting = self._waiting, []
        return taken, items

    def _answered(
        self,
        requests: list[StoreRequest[Item, Result]],
        items: Sequence[Item],
        generation: int,
        answer: Reply | Exception,
    ) -> None:
        """A call for these items of the requests, made under that generation of the layout, has ended."""
        self._free += 1
        if isinstance(answer, Exception):
            self._fail(requests, generation, answer)
        else:
            try:
                if answer.change.is_news:
                    self._bucket.notify(answer.change)
                results = self._verb.read(items, answer)
            except Exception as error:
                self._fail(requests, generation, error)
            else:
                unfinished = self._deal_out(results, requests, len(items))
                if unfinished:
                    self._go_on(unfinished, generation)
        if self._waiting:
            self._loop.call_soon(self._begin)

    def _deal_out(
        self, results: Sequence[Result], requests: list[StoreRequest[Item, Result]], size: int
    ) -> list[StoreRequest[Item, Result]]:
        """Give the requests the results of the first of their `size` items. Returns those that lack some."""
        done = len(results)
        # what it did not do was packed for nothing: the next call is given a few items more than this one did
        if done < size:
            self._piece = done + done // 8 + 1
        elif size >= self._piece:
            self._piece *= 2
        at, unfinished = 0, []
        for request in requests:
            upto = at + len(request.left)
            if not request.add(results[at:upto]):
                unfinished.append(request)
            at = upto
        return unfinished

    def _go_on(self, requests: list[StoreRequest[Item, Result]], generation: int) -> None:
        """Put requests of a call first in the next one, unless what is left of them may belong to other buckets now."""
        if generation == self._bucket.buckets.layout.generation:
            self._waiting[:0] = requests
        else:
            for request in requests:
                request.fail(Unavailable())

    def _fail(
        self, requests: list[StoreRequest[Item, Result]], generation: int, error: Exception
    ) -> None:
        if isinstance(error, UnicodeEncodeError):
            bad = [request for request in requests if not self._can_be_sent(request)] or requests
            self._go_on([request for request in requests if request not in bad], generation)
            requests = bad
        if isinstance(error, Unavailable):
            requests += self._take_impatient()
        for request in requests:
            request.fail(error)

    def _can_be_sent(self, request: StoreRequest[Item, Result]) -> bool:
        try:
            for word in self._verb.pack(request.left):
                if isinstance(word, str):
                    word.encode()
        except UnicodeEncodeError:
            return False
        return True

    def _take_impatient(self) -> list[StoreRequest[Item, Result]]:
        last = monotonic() - PATIENCE_S
        taken = [request for request in self._waiting if request.since < last]
        self._waiting = [request for request in self._waiting if request.since >= last]
        return taken
