"""The store: runs the verbs (verbs.py) for jobs of any bucket. The rest of the program sees nothing else of Redis.

`bucket(number)` is one bucket of it, for the parts that work on buckets: the timers, the polls, the scrubber.

Requests for the same verb in a bucket are batched without a timer: those that arrive while calls are in flight share
the next one.
"""

import asyncio
import secrets
import sys
from collections.abc import Callable, Sequence
from functools import partial
from operator import methodcaller
from time import monotonic
from typing import Any, Final, Generic, TypeVar

from delayqueue.config.failpoint import Failpoint
from delayqueue.domain.access import Scope
from delayqueue.domain.job import PolledTopic
from delayqueue.domain.receipt import nonces
from delayqueue.errors import Text, Unavailable
from delayqueue.metrics import Metrics
from delayqueue.store.bucket import OUTDATED, Bucket
from delayqueue.store.buckets import Buckets
from delayqueue.store.call import Reply, ScriptCall, functions_by_name
from delayqueue.store.census import Census
from delayqueue.store.durability import Durability
from delayqueue.store.health import health
from delayqueue.store.history_store import HistoryStore
from delayqueue.store.registry import Registry
from delayqueue.store.scripts import ZSET, Scripts
from delayqueue.store.server import AT_A_TIME
from delayqueue.store.servers import Servers
from delayqueue.store.types import Change, Health
from delayqueue.store.verbs import Verb
from delayqueue.store.watch import StoreWatch
from delayqueue.tasks import SingleFlight, Tasks

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
        self, items: Sequence[Item], lost: Result | None, read: Callable[[Sequence[Result]], Any]
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

    def __init__(self, verb: Verb[Item, Result], scope: Scope, bucket: Bucket) -> None:
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
        # items that the script did not do were packed for nothing: the next call gets only a few more than this one did
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


PING_S: Final = 1.0  # a server that takes longer to answer a PING is of little use

T = TypeVar("T")


class Store:
    """Whatever asks the store raises Unavailable if it does not answer or refuses."""

    def __init__(
        self,
        servers: Servers,
        buckets: Buckets,
        scripts: Scripts = ZSET,
        failpoint: Failpoint | None = None,
        *,
        durability: Durability | None = None,
    ) -> None:
        self.servers: Final = servers
        self.buckets: Final = buckets
        self.durability: Final = durability or Durability()
        self.failpoint: Final = failpoint
        self.metrics: Final = Metrics()
        self.scripts: Final = functions_by_name(scripts, self.durability, self.metrics)
        self.sender: Final = secrets.token_hex(6)  # this process, which ignores its own messages
        self.nonces: Final = nonces()  # of reservations
        self.tag_move_lock = (
            asyncio.Lock()
        )  # one at a time: reschedule_tag by a distance keeps the id of each job
        self.recoveries: Final = Tasks("call of the store")
        self.changes: Final = Tasks("settings of a topic")  # which all buckets get, whoever leaves
        self.closed: Text | None = None  # why no calls are made now
        self.refused_generation = -1  # the last one of a layout that a bucket has refused
        self._buckets: list[Bucket] = []  # all that this process knows
        self._batchers: dict[tuple[int, Verb[Any, Any], Scope], Batcher[Any, Any]] = {}
        self._on_ready: list[Callable[[int, PolledTopic, int], None]] = []
        self._on_due: list[Callable[[int, int], None]] = []
        self._splits = Tasks("requests for several buckets")
        self._pings = SingleFlight[object](PING_S)
        self._grow()
        self.registry = Registry(self.bucket(0))
        self.history = HistoryStore(self.bucket(0))
        self.census = Census(self)
        self.watch: Final = StoreWatch(self)
        buckets.on_change(self._grow)
        buckets.on_change(self._fail_waiting)

    def bucket(self, number: int) -> Bucket:
        """The bucket with this number, from 0."""
        return self._buckets[number]

    @property
    def in_force(self) -> Sequence[Bucket]:
        """The buckets that hold jobs."""
        return self._buckets[: self.buckets.count]

    def run(
        self, verb: Verb[Item, Result], items: Sequence[Item], scope: Scope
    ) -> asyncio.Future[list[Result]]:
        """The results of the items, in order. Jobs of topics out of the scope do not exist.

        Raises Unavailable if the store does not answer; if only some buckets do not, and the verb has a `lost`, that is
        the result of their items. Cancelling the future does not stop the call.
        """
        return self.run_then(verb, items, scope, list)

    def run_then(
        self,
        verb: Verb[Item, Result],
        items: Sequence[Item],
        scope: Scope,
        read: Callable[[Sequence[Result]], T],
    ) -> asyncio.Future[T]:
        """What `read` makes of the results that run() gives, or the error that it raises."""
        request = StoreRequest(items, verb.lost, read)
        number = 0
        if self.buckets.layout.size > 1 or not items:
            numbers = {self.buckets.of(verb.id_of(item)) for item in items}
            if len(numbers) != 1:
                self._splits.start(self._split(verb, scope, request))
                return request
            number = numbers.pop()
        key = number, verb, scope
        batcher = self._batchers.get(key)
        if batcher is None:
            batcher = self._batchers[key] = Batcher(verb, scope, self._buckets[number])
        batcher.submit(request)
        return request

    async def _split(
        self, verb: Verb[Item, Result], scope: Scope, request: StoreRequest[Item, Result]
    ) -> None:
        """Ask each bucket for its items."""
        try:
            request.add(await self._ask(verb, scope, request.left))
        except Exception as error:
            request.fail(error)

    async def _ask(
        self, verb: Verb[Item, Result], scope: Scope, items: Sequence[Item]
    ) -> list[Result]:
        """The results of items of several buckets, in order."""
        places: dict[int, list[int]] = {}
        for place, item in enumerate(items):
            places.setdefault(self.buckets.of(verb.id_of(item)), []).append(place)
        parts = [
            self.run(verb, [items[place] for place in mine], scope) for mine in places.values()
        ]
        answers = await asyncio.gather(*parts, return_exceptions=True)
        all_failed = all(isinstance(answer, BaseException) for answer in answers)
        results: dict[int, Result] = {}
        for mine, answer in zip(places.values(), answers, strict=True):
            if isinstance(answer, Unavailable) and verb.lost is not None and not all_failed:
                results |= dict.fromkeys(mine, verb.lost)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                results |= zip(mine, answer, strict=True)
        return [results[place] for place in range(len(items))]

    def close(self, why: Text) -> None:
        """Refuse all calls, until open()."""
        self.closed = why

    def open(self) -> None:
        """Make calls: the layout is the one in force."""
        self.closed = None
        self.servers.announce_change()

    def be_outdated(self, generation: int) -> None:
        """A bucket has refused this generation of the layout: refuse all calls if they are still made by it."""
        self.refused_generation = max(self.refused_generation, generation)
        if self.buckets.layout.generation <= generation:
            self.close(OUTDATED)

    def ailment(self) -> Text | None:
        """Why calls fail now; None if none does."""
        return self.closed or next(filter(None, (each.ailment for each in self.in_force)), None)

    def on_ready(self, listener: Callable[[int, PolledTopic, int], None]) -> None:
        """Call `listener(bucket, topic, count)` whenever a call has made jobs ready."""
        self._on_ready.append(listener)

    def on_due(self, listener: Callable[[int, int], None]) -> None:
        """Call `listener(bucket, in_ms)` if something that a call has set is due within a second: in that many ms."""
        self._on_due.append(listener)

    def notify(self, bucket: int, change: Change) -> None:
        """Tell the listeners what a call has changed."""
        if change.next_due_ms is not None:
            for due in self._on_due:
                due(bucket, change.next_due_ms)
        for topic, count in change.ready:
            for ready in self._on_ready:
                ready(bucket, topic, count)

    async def health(self) -> Health:
        """The servers' figures; servers that do not answer are left out, unless none does."""
        found = await health(self.servers)
        warnings = self.warnings
        return found._replace(
            durable=found.durable and not warnings, warnings=[*found.warnings, *warnings]
        )

    @property
    def warnings(self) -> Sequence[Text]:
        """Why a failover could lose an acknowledged job right now, if `durability` should prevent that."""
        replicas = self.durability.replicas
        return replicas.warnings if replicas else ()

    def buckets_beside(self, bucket: int) -> set[int]:
        """The buckets on the same server, including this one."""
        return {bucket}.union(*(mates for mates in self._by_server() if bucket in mates))

    async def unreachable_buckets(self) -> set[int]:
        """The buckets whose server does not answer: not to the last call, or not to a PING now.

        Whoever asks meanwhile gets the same answer, so a flood of questions costs the store nothing.
        """
        groups = self._by_server()
        answered = await asyncio.gather(*(self._answers(min(buckets)) for buckets in groups))
        reached = (buckets for buckets, answers in zip(groups, answered, strict=True) if answers)
        silent = {each.number for each in self.in_force if each.is_away}
        return set(range(self.buckets.count)).difference(*reached) | silent

    def _by_server(self) -> list[set[int]]:
        """The buckets in force of each server."""
        numbers = {tag: number for number, tag in enumerate(self.buckets.tags)}
        return [{numbers[tag] for tag in tags} for tags in self.servers.groups(numbers).values()]

    async def _answers(self, number: int) -> bool:
        """Whether this bucket's server does; a PING that hangs is left to itself."""
        bucket, ping = self._buckets[number], methodcaller("ping")
        try:
            async with asyncio.timeout(PING_S):
                await self._pings.do(number, lambda: bucket.ask("ping", ping))
        except (Unavailable, TimeoutError):
            return False
        return True

    def _grow(self) -> None:
        for number in range(len(self._buckets), len(self.buckets.keys)):
            self._buckets.append(Bucket(number, self))

    def _fail_waiting(self) -> None:
        """The layout is another one: what waits was routed by the former one, and may belong to other buckets now."""
        for batcher in self._batchers.values():
            batcher.fail_waiting(Unavailable())
