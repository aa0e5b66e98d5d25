"""Matches waiting polls with jobs: what they want, what each bucket may have for them, and what it is asked. No IO.

A *credit* is a job that a bucket may have for a queue of polls: because a script reported one, or because the bucket
has not been asked yet. A bucket is asked for no more jobs than it has credits, and all buckets together for no more
than the polls of the queue want.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from delayqueue.domain.job import Reserved
from delayqueue.engine.wait_queue import Poll, StandingPoll, WaitQueue
from delayqueue.store.types import Demand

JOBS_PER_DEMAND = 1000
DEMANDS_PER_CALL = 200
RESYNC_QUEUES = 500  # queues of polls that one resync asks for


class BucketRequest(NamedTuple):
    """What a call asks of its bucket for one queue."""

    queue: WaitQueue
    wanted: int
    spare: int  # credits beyond `wanted`
    last_number: int  # the last poll that had arrived by then


class BucketState:
    """What the matcher knows about one bucket."""

    __slots__ = ("counted", "pending", "requests", "resync_at", "slow", "wake")

    def __init__(self, wake: Callable[[], None]) -> None:
        self.wake = wake
        self.pending: dict[WaitQueue, None] = {}  # queues to ask it for in the next call
        self.requests: list[BucketRequest] = []  # of the call in flight
        self.counted = False  # whether those requests count towards what is asked for
        self.slow = False  # its last call took long or failed: do not count on the next one
        self.resync_at = 0


class Matcher:
    """Decides which poll gets what: all events of a process's waiting polls come here, each in a few steps.

    To ask a bucket, call next(), then delivered() or failed(), and so on until next() is empty. A bucket has one call
    in flight at a time.
    """

    def __init__(self) -> None:
        self.waiting = 0  # number of waiting polls
        self._last_number = 0
        self._queues: dict[tuple[tuple[str, ...], bool], WaitQueue] = {}
        self._by_topic: dict[str, dict[WaitQueue, None]] = {}
        self._buckets: list[BucketState] = []

    def grow(self, wake: Callable[[], None]) -> None:
        """Add a bucket; `wake` is called when it should be asked, unless a call is in flight."""
        self._buckets.append(BucketState(wake))
        for queue in self._queues.values():
            queue.credits.append(queue.wanted)
            queue.dry_up_to.append(0)
            queue.failed_up_to.append(0)
            self._offer(queue)

    def add(self, topics: tuple[str, ...], poll: Poll, *, by_priority: bool = False) -> None:
        """Add a poll, numbered higher than any before. Each bucket may have something for it."""
        by_priority = by_priority and len(topics) > 1  # one topic's come in this order anyway
        self._last_number = poll.number
        self.waiting += 1
        queue = self._queues.get((topics, by_priority))
        if queue is None:
            queue = self._open(topics, by_priority=by_priority)
        queue.add(poll)
        for bucket in range(len(self._buckets)):
            self._credit(queue, bucket, poll.wanted)

    def remove(self, poll: Poll) -> None:
        """Remove a poll that is gone or answered; does nothing if it is not waiting."""
        queue = poll.queue
        if queue is None:
            return
        queue.remove(poll)
        self.waiting -= 1
        if not queue.wanted:
            self._close(queue)

    def widen(self, poll: StandingPoll) -> None:
        """The poll, which is waiting, takes one job more."""
        if poll.queue is not None:
            poll.queue.widen(poll)
            self._offer(poll.queue)

    def hurry(self, poll: Poll) -> None:
        """End the poll's wait: it is answered as soon as every bucket was asked once."""
        if poll.queue is not None and poll.queue.hurry(poll):
            self._answer([poll])

    def expire(self, poll: Poll) -> None:
        """Answer the poll with nothing, whatever is on its way."""
        self._answer([poll])

    def notify(self, bucket: int, topic: str, arrived: int) -> None:
        """The bucket has `arrived` more ready jobs of the topic."""
        for queue in self._by_topic.get(topic, ()):
            self._credit(queue, bucket, arrived)

    def resync(self, bucket: int) -> None:
        """Ask the bucket for some of the queues, in turn, although nothing was reported."""
        state = self._buckets[bucket]
        queues = list(
            islice(self._queues.values(), state.resync_at, state.resync_at + RESYNC_QUEUES)
        )
        state.resync_at = state.resync_at + RESYNC_QUEUES if len(queues) == RESYNC_QUEUES else 0
        for queue in queues:
            self._credit(queue, bucket, queue.wanted)

    def next(self, bucket: int) -> list[Demand]:
        """What the next call should ask of the bucket, the longest wait first; [] = nothing."""
        state = self._buckets[bucket]
        if not state.pending:
            return []
        queues, state.pending = list(state.pending), {}
        if len(queues) > 1:
            queues.sort(key=lambda queue: queue.first_number)
        state.counted = not state.slow
        demands: list[Demand] = []
        for queue in queues:
            most = queue.wanted - queue.asked
            if most <= 0:
                continue
            if len(demands) == DEMANDS_PER_CALL:
                state.pending[queue] = None
                continue
            credit, queue.credits[bucket] = queue.credits[bucket], 0
            wanted = min(credit, most, JOBS_PER_DEMAND)
            if state.counted:
                queue.asked += wanted
            state.requests.append(BucketRequest(queue, wanted, credit - wanted, self._last_number))
            demands.append(Demand(queue.topics, wanted, queue.by_priority))
        return demands

    def delivered(
        self, bucket: int, found: Sequence[list[Reserved]], complete: int
    ) -> list[Reserved]:
        """Hand out what the call brought for each demand; returns the jobs that no poll is left to take.

        After the first `complete` demands the bucket may have more, although it brought less than was wanted.
        """
        self._buckets[bucket].slow = False
        requests = self._end_call(bucket)
        left: list[Reserved] = []
        for place, (request, jobs) in enumerate(zip(requests, found, strict=True)):
            queue = request.queue
            if jobs:
                left += self._hand_out(queue, jobs)
            if not queue.wanted:  # nobody waits there any more
                continue
            if len(jobs) < request.wanted and place < complete:
                self._answer(queue.note_dry(bucket, request.last_number))
            else:
                self._keep_credits(request, bucket, len(jobs))
            self._offer(queue)
        return left

    def failed(self, bucket: int) -> None:
        """The call has failed.

        Polls that have arrived since then fail, too: behind another call they would wait twice as long.
        """
        state = self._buckets[bucket]
        state.slow = True
        requests = self._end_call(bucket)
        for queue in [*(request.queue for request in requests), *state.pending]:
            for poll in queue.note_failure(bucket, self._last_number):
                self.remove(poll)
                poll.fail()
        for request in requests:
            request.queue.credits[bucket] += request.wanted + request.spare
            self._offer(request.queue)

    def slow(self, bucket: int) -> None:
        """The call takes long: other buckets may be asked for the same jobs; any excess is put back."""
        state = self._buckets[bucket]
        state.slow = True
        if state.counted:
            self._discount(state)
        for request in state.requests:
            self._offer(request.queue)

    def close(self) -> None:
        """Answer every poll with nothing."""
        for queue in list(self._queues.values()):
            self._answer(list(queue.polls))

    def _open(self, topics: tuple[str, ...], *, by_priority: bool) -> WaitQueue:
        queue = WaitQueue(topics, len(self._buckets), by_priority=by_priority)
        self._queues[topics, by_priority] = queue
        for topic in topics:
            self._by_topic.setdefault(topic, {})[queue] = None
        return queue

    def _close(self, queue: WaitQueue) -> None:
        del self._queues[queue.topics, queue.by_priority]
        for topic in queue.topics:
            queues = self._by_topic[topic]
            del queues[queue]
            if not queues:
                del self._by_topic[topic]
        for state in self._buckets:
            state.pending.pop(queue, None)

    def _credit(self, queue: WaitQueue, bucket: int, count: int) -> None:
        """Give the queue `count` more credits at the bucket."""
        queue.credits[bucket] += count
        state = self._buckets[bucket]
        if queue not in state.pending and queue.wanted > queue.asked:
            state.pending[queue] = None
            state.wake()

    def _offer(self, queue: WaitQueue) -> None:
        """Ask all buckets that may have something, if the polls want more than is asked for."""
        if queue.wanted > queue.asked:
            for bucket, credit in enumerate(queue.credits):
                if credit:
                    self._credit(queue, bucket, 0)

    def _end_call(self, bucket: int) -> list[BucketRequest]:
        """What the call had asked for; it no longer counts as asked."""
        state = self._buckets[bucket]
        if state.counted:
            self._discount(state)
        requests, state.requests = state.requests, []
        return requests

    def _discount(self, state: BucketState) -> None:
        state.counted = False
        for request in state.requests:
            request.queue.asked -= request.wanted

    def _keep_credits(self, request: BucketRequest, bucket: int, brought: int) -> None:
        """Keep the credits beyond what the bucket brought."""
        queue = request.queue
        credit = queue.credits[bucket] + request.wanted - brought + request.spare
        if queue.wanted and queue.last_number > queue.dry_up_to[bucket]:
            credit = max(credit, 1)  # older polls took the jobs that younger ones had credits for
        queue.credits[bucket] = credit

    def _hand_out(self, queue: WaitQueue, jobs: list[Reserved]) -> list[Reserved]:
        """Give jobs to waiting polls; returns the jobs that no poll is left to take."""
        at = 0
        while at < len(jobs) and queue.wanted:
            poll = next(iter(queue.polls))
            some = [] if poll.future.cancelled() else jobs[at : at + poll.wanted]
            if some and isinstance(poll, StandingPoll) and len(some) < poll.wanted:
                queue.move_back(poll, len(some), self._last_number)
            else:
                self.remove(poll)
            poll.answer(some)
            at += len(some)
        return jobs[at:]

    def _answer(self, polls: Iterable[Poll]) -> None:
        """Answer the polls with nothing."""
        for poll in polls:
            self.remove(poll)
            poll.answer([])
