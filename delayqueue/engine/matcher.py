"""Matches waiting polls with jobs: what they want, what each bucket may have for them, and what it is asked. No IO.

A poll's first question to a bucket is for all of its topics. After that, a bucket is asked only for what may have come
since then. A *credit* is a job of a topic that a script has reported there; it goes to the poll that has waited longest
for the topic. As a report can get lost, all topics become *suspects* from time to time: one poll asks for each. All
buckets together are asked for no more jobs than the polls of a queue want.
"""

from collections.abc import Callable, Iterable, Sequence
from heapq import merge
from itertools import islice
from math import ceil
from operator import attrgetter
from typing import NamedTuple

from delayqueue.domain.job import CALLS, PolledTopic, Reserved
from delayqueue.engine.wait_queue import Poll, StandingPoll, TopicQueues, WaitQueue
from delayqueue.errors import Text, Unavailable
from delayqueue.store.types import Demand

JOBS_PER_DEMAND = 1000
DEMANDS_PER_CALL = 200
TOPICS_PER_CALL = 1000  # with credits
RESYNC_QUEUES = 500  # with twice as many queues, a resync is for half of the topics

_first_number = attrgetter("first_number")
_demand, _topics, _is_last = attrgetter("demand"), attrgetter("queue.topics"), attrgetter("is_last")


class Loan(NamedTuple):
    """The credits and suspects that a request may use up."""

    topics: tuple[PolledTopic, ...]  # to ask for, in the queue's order
    credits: dict[PolledTopic, int]  # by topic
    suspects: list[PolledTopic]  # those of the topics


NO_LOAN = Loan((), {}, [])


class BucketRequest(NamedTuple):
    """The part of a call to a bucket that is for one queue."""

    queue: WaitQueue
    demand: Demand
    unasked: int  # jobs of first questions, which are for all topics; 0 = it has none
    loan: Loan
    last_number: int  # the last poll that had arrived by then
    is_last: bool  # the others come first: the call before could not finish it


class BucketState:
    """What the matcher knows about one bucket."""

    __slots__ = (
        "counted",
        "credits",
        "pending",
        "reported",
        "requests",
        "resync_at",
        "slow",
        "suspects",
        "unfinished",
        "wake",
    )

    def __init__(self, wake: Callable[[], None]) -> None:
        self.wake = wake
        self.pending: dict[WaitQueue, None] = {}  # queues with first questions for the next call
        # jobs by topic, without those that are lent; 0 = jobs are only suspected there
        self.credits: dict[PolledTopic, int] = {}
        self.reported: dict[PolledTopic, int] = {}  # what comes to the credits with the next call
        # topics in `credits` or `reported` that may have no jobs
        self.suspects = set[PolledTopic]()
        self.requests: list[BucketRequest] = []  # of the call in flight
        self.counted = False  # whether these requests count towards what is asked for
        # topics that the last call could not finish
        self.unfinished: list[tuple[PolledTopic, ...]] = []
        self.slow = False  # its last call took long or failed: do not count on the next one
        self.resync_at = 0

    def suspect(self, topics: Iterable[PolledTopic]) -> None:
        """The bucket may have any number of jobs of these topics."""
        for topic in topics:
            self.reported.setdefault(topic, 0)
            self.suspects.add(topic)

    def lend(self, queue: WaitQueue, most: int) -> Loan:
        """At most that many credits, of the first of the queue's topics that have any, and all of its suspects."""
        topics, lent, suspects = list[PolledTopic](), dict[PolledTopic, int](), list[PolledTopic]()
        for topic in queue.topics:
            if topic not in self.credits:
                continue
            credit = self.credits.pop(topic)
            lent[topic] = taken = min(credit, most)
            most -= taken
            if credit > taken:
                self.credits[topic] = credit - taken
            if topic in self.suspects:
                self.suspects.remove(topic)
                suspects.append(topic)
            elif not (taken or queue.by_priority):
                continue
            topics.append(topic)
        return Loan(tuple(topics), lent, suspects)

    def settle(self, request: BucketRequest, jobs: Iterable[Reserved], *, is_dry: bool) -> None:
        """Keep what the request, which has brought these jobs, has left of its loan; is_dry: there are no more jobs."""
        if is_dry:
            for topic in request.demand.topics:
                self.credits.pop(topic, None)
            return
        lent = request.loan.credits
        for job in jobs:
            asked_as: PolledTopic = CALLS if CALLS in lent else job.topic
            if asked_as in lent:
                lent[asked_as] -= 1
        for topic, credit in lent.items():
            if credit > 0:
                self.credits[topic] = self.credits.get(topic, 0) + credit
        if request.loan.suspects:
            self.suspect(request.loan.suspects)


class Matcher:
    """Decides which poll gets what: all events of a process's waiting polls come here, each in a few steps.

    To ask a bucket, call next(), then delivered() or failed(), and so on until next() is empty. A bucket has one call
    in flight at a time.
    """

    def __init__(self) -> None:
        self.waiting = 0  # polls of clients
        self._last_number = 0
        self._queues: dict[tuple[tuple[PolledTopic, ...], bool], WaitQueue] = {}
        self._by_topic: dict[PolledTopic, TopicQueues] = {}
        self._buckets: list[BucketState] = []

    def grow(self, wake: Callable[[], None]) -> None:
        """Add a bucket; `wake` is called when it should be asked, unless a call is in flight."""
        self._buckets.append(BucketState(wake))
        for queue in self._queues.values():
            queue.unasked.append(queue.wanted)
            queue.dry_up_to.append(0)
            queue.failed_up_to.append(0)
            self._offer(queue)

    def add(
        self, topics: tuple[PolledTopic, ...], poll: Poll, *, by_priority: bool = False
    ) -> None:
        """Add a poll, numbered higher than any before. Each bucket may have something for it."""
        by_priority = by_priority and len(topics) > 1  # one topic's come in this order anyway
        self._last_number = poll.number
        self.waiting += poll.is_client
        queue = self._queues.get((topics, by_priority))
        if queue is None:
            queue = WaitQueue(topics, len(self._buckets), by_priority=by_priority)
            queue.add(poll)
            self._queues[topics, by_priority] = queue
            for topic in topics:
                if waiters := self._by_topic.get(topic):
                    waiters.open(queue)
                else:
                    self._by_topic[topic] = TopicQueues(queue)
        else:
            queue.add(poll)
        for bucket in range(len(self._buckets)):
            queue.unasked[bucket] += poll.wanted
        self._offer(queue)

    def remove(self, poll: Poll) -> None:
        """Remove a poll that is gone or answered; does nothing if it is not waiting."""
        queue = poll.queue
        if queue is None:
            return
        queue.remove(poll)
        self.waiting -= poll.is_client
        if queue.wanted:
            return
        del self._queues[queue.topics, queue.by_priority]
        for topic in queue.topics:
            waiters = self._by_topic[topic]
            if waiters.queues == 1:
                del self._by_topic[topic]
            else:
                waiters.close()
        for state in self._buckets:
            state.pending.pop(queue, None)

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
        """Answer the poll with no jobs, even if some are on their way."""
        self._answer([poll])

    def notify(self, bucket: int, topic: PolledTopic, arrived: int) -> None:
        """The bucket has `arrived` more ready jobs of the topic."""
        if topic in self._by_topic:
            state = self._buckets[bucket]
            state.reported[topic] = state.reported.get(topic, 0) + arrived
            state.wake()

    def resync(self, bucket: int) -> None:
        """Ask the bucket for some of the topics, in turn, although nothing was reported."""
        state, topics = self._buckets[bucket], len(self._by_topic)
        if topics:
            end = state.resync_at + ceil(topics / ceil(len(self._queues) / RESYNC_QUEUES))
            state.suspect(islice(self._by_topic, state.resync_at, end))
            state.resync_at = end if end < topics else 0
            state.wake()

    def next(self, bucket: int) -> list[Demand]:
        """What the next call should ask of the bucket; [] = nothing.

        The longest wait comes first, but what the last call could not finish comes last: it has kept others waiting.
        """
        state = self._buckets[bucket]
        pending, state.pending = state.pending, {}
        reported, state.reported = state.reported, {}
        for topic, arrived in reported.items():
            state.credits[topic] = state.credits.get(topic, 0) + arrived
        sources: list[Iterable[WaitQueue]] = [sorted(pending, key=_first_number)]
        for topic in list(islice(state.credits, TOPICS_PER_CALL)):
            if waiters := self._by_topic.get(topic):
                sources.append(waiters.takers(topic, state.credits))
            else:
                del state.credits[topic]
                state.suspects.discard(topic)
        state.counted = not state.slow
        seen = set[WaitQueue]()
        queues = merge(*sources, key=_first_number) if len(sources) > 1 else sources[0]
        for queue in queues:
            if queue not in seen:
                seen.add(queue)
                self._request(bucket, queue)
            if not (pending or state.credits):
                break
            if len(state.requests) == DEMANDS_PER_CALL:
                state.pending = {each: None for each in pending if each.unasked[bucket]}
                break
        state.unfinished = []
        state.requests.sort(key=_is_last)
        return list(map(_demand, state.requests))

    def delivered(
        self, bucket: int, found: Sequence[list[Reserved]], complete: int
    ) -> list[Reserved]:
        """Hand out what the call brought for each demand; returns the jobs that no poll is left to take.

        After the first `complete` demands the bucket may have more, although it brought less than was wanted.
        """
        state = self._buckets[bucket]
        state.slow = False
        requests, state.requests = state.requests, []
        state.unfinished = list(map(_topics, requests[complete : complete + 1]))
        left: list[Reserved] = []
        for place, (request, jobs) in enumerate(zip(requests, found, strict=True)):
            queue = request.queue
            is_dry = len(jobs) < request.demand.wanted and place < complete
            if state.counted:
                queue.asked -= request.demand.wanted
            if request.loan.topics or state.credits:
                state.settle(request, jobs, is_dry=is_dry)
            if jobs:
                left += self._hand_out(queue, jobs)
            if queue.wanted:
                if not is_dry:
                    queue.note_rest(bucket, request.unasked - len(jobs))
                elif over := queue.note_dry(bucket, request.last_number):
                    self._answer(over)
                self._offer(queue)
        return left

    def failed(self, bucket: int, why: Text = Unavailable.default) -> None:
        """End a call that has failed: polls that have waited for it fail with this reason.

        Polls that have arrived since then fail, too: behind another call they would wait twice as long.
        """
        state = self._buckets[bucket]
        state.slow = True
        self._discount(state)
        requests, state.requests = state.requests, []
        for queue in [*(request.queue for request in requests), *state.pending]:
            for poll in queue.note_failure(bucket, self._last_number):
                if not poll.future.done():  # else it has jobs to take, and goes on, or is gone
                    self.remove(poll)
                    poll.fail(why)
        for request in requests:
            state.settle(request, (), is_dry=False)
            request.queue.unasked[bucket] += request.unasked
            self._offer(request.queue)

    def slow(self, bucket: int) -> None:
        """The call takes long: other buckets may be asked for the same jobs; any excess is put back."""
        state = self._buckets[bucket]
        state.slow = True
        self._discount(state)
        for request in state.requests:
            self._offer(request.queue)

    def close(self) -> None:
        """Answer every poll with nothing."""
        for queue in list(self._queues.values()):
            self._answer(list(queue.polls))

    def _offer(self, queue: WaitQueue) -> None:
        """Wake all buckets that may have something for it, if its polls want more than is asked for."""
        if queue.wanted > queue.asked:
            for bucket, state in enumerate(self._buckets):
                if queue.unasked[bucket]:
                    state.pending[queue] = None
                    state.wake()
                elif state.credits or state.reported:
                    state.wake()

    def _request(self, bucket: int, queue: WaitQueue) -> None:
        """Let the next call ask for the queue's first questions, and for what was reported."""
        state = self._buckets[bucket]
        most = min(queue.wanted - queue.asked, JOBS_PER_DEMAND)
        if most <= 0:
            return
        unasked, queue.unasked[bucket] = queue.unasked[bucket], 0
        loan = state.lend(queue, max(most - unasked, 0)) if state.credits else NO_LOAN
        wanted = most if loan.suspects else min(most, unasked + sum(loan.credits.values()))
        if wanted:
            if state.counted:
                queue.asked += wanted
            topics = queue.topics if unasked else loan.topics
            demand = Demand(topics, wanted, queue.by_priority)
            is_last = queue.topics in state.unfinished
            request = BucketRequest(queue, demand, unasked, loan, self._last_number, is_last)
            state.requests.append(request)

    def _discount(self, state: BucketState) -> None:
        """Take what the call asked for off the jobs that are asked for."""
        if state.counted:
            state.counted = False
            for request in state.requests:
                request.queue.asked -= request.demand.wanted

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
