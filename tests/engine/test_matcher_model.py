"""The matcher of waiting polls keeps its promises, whatever happens in whatever order. Without IO.

The model is a store of several buckets whose calls are served and answered at any time, or fail.
HYPOTHESIS_PROFILE=long tries many more sequences.
"""

import gc
import os
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from delayqueue.domain.job import PolledTopic, Reserved
from delayqueue.engine.matcher import BucketRequest, Matcher
from delayqueue.engine.wait_queue import Poll, StandingPoll, WaitQueue
from delayqueue.store.types import Demand

LONG: Final = os.environ.get("HYPOTHESIS_PROFILE") == "long"
MOST_BUCKETS: Final = 4
TOPICS: Final = ("t", "u", "v")
LISTS: Final[tuple[tuple[PolledTopic, ...], ...]] = (
    ("t",), ("u",), ("t", "u"), ("u", "t"), ("v", "t"), ("t", "u", "v"),
)  # fmt: skip
PLACES: Final = st.integers(0, 1000)  # picks one of those there are


@dataclass(eq=False)
class Client:
    """A poll as the model sees it."""

    poll: Poll
    topics: tuple[PolledTopic, ...]
    patient: bool
    answered: set[int] = field(default_factory=set)  # buckets that have nothing more for it
    failed: set[int] = field(default_factory=set)
    taken: list[Reserved] = field(default_factory=list)

    @property
    def stands(self) -> bool:
        """It goes on after an answer."""
        return isinstance(self.poll, StandingPoll)

    @property
    def waits(self) -> bool:
        return not self.poll.future.done() and self.poll.wanted > 0

    @property
    def outcome(self) -> list[Reserved] | BaseException | None:
        """Its jobs or its error; None = it has left."""
        future = self.poll.future
        if future.cancelled():
            return None
        self.taken += self.poll.take()
        return future.exception() or self.taken


@dataclass
class Call:
    """A call in flight. `found` None = the store has not served it yet."""

    demands: Sequence[Demand]
    lists: Sequence[
        tuple[PolledTopic, ...]
    ]  # the whole lists of those polls for which the demands are
    last_number: int
    counted: list[int]  # generations of the demands' queues; [] = nothing relies on it
    found: list[list[Reserved]] | None = None
    complete: int = 0


class Machine(RuleBasedStateMachine):
    """The matcher beside the model."""

    def __init__(self) -> None:
        super().__init__()
        self.matcher = Matcher()
        self.clients: list[Client] = []  # all polls so far, in order
        self.numbers, self.job_ids = count(1), count(1)
        self.ready: list[dict[str, deque[str]]] = []  # of each bucket
        self.calls: list[Call | None] = []
        self.slow: set[int] = set()
        self.unfinished: dict[
            int, tuple[PolledTopic, ...]
        ] = {}  # by bucket: the list that its last call was working for
        self.awake: set[int] = set()
        self.messages: list[tuple[int, str]] = []  # of jobs that the matcher does not know of
        self.lossy = False  # messages may be lost
        self.lost = False  # one was
        self.demands = 0  # how many there were
        self.reasons = 0  # for which there may have been one
        self.generations: Counter[tuple[PolledTopic, ...]] = Counter()  # how often no poll was left

    @initialize(buckets=st.integers(1, 3), lossy=st.booleans())
    def begin(self, buckets: int, lossy: bool) -> None:
        self.lossy = lossy
        for _ in range(buckets):
            self.grow()

    @rule()
    @precondition(lambda self: len(self.calls) < MOST_BUCKETS)
    def grow(self) -> None:
        bucket = len(self.calls)
        self.calls.append(None)
        self.ready.append({topic: deque() for topic in TOPICS})
        self.reasons += len(LISTS)
        self.matcher.grow(lambda: self.awake.add(bucket))

    @rule(
        topics=st.sampled_from(LISTS),
        wanted=st.integers(1, 3),
        patient=st.sampled_from([True, True, False]),
    )
    def pop(self, topics: tuple[PolledTopic, ...], wanted: int, patient: bool) -> None:
        poll = Poll(next(self.numbers), wanted, 30 if patient else 0)
        self.clients.append(Client(poll, topics, patient))
        self.reasons += len(self.calls)
        self.matcher.add(topics, poll)

    @rule(topics=st.sampled_from(LISTS), wanted=st.integers(1, 3))
    def consume(self, topics: tuple[PolledTopic, ...], wanted: int) -> None:
        self.reasons += len(self.calls)
        poll = StandingPoll(next(self.numbers), wanted, topics)
        self.clients.append(Client(poll, topics, patient=True))
        self.matcher.add(topics, poll)

    @rule(place=PLACES)
    @precondition(lambda self: self.standing())
    def widen(self, place: int) -> None:
        standing = self.standing()
        poll = standing[place % len(standing)].poll
        assert isinstance(poll, StandingPoll)
        self.reasons += len(self.calls)
        if poll.queue is not None:
            self.matcher.widen(poll)
        else:
            poll.number = next(self.numbers)
            poll.wanted += 1
            self.matcher.add(poll.topics, poll)

    @rule(place=PLACES, topic=st.sampled_from(TOPICS), jobs=st.integers(1, 3), told=st.booleans())
    def arrive(self, place: int, topic: str, jobs: int, told: bool) -> None:
        bucket = place % len(self.calls)
        self.ready[bucket][topic].extend(str(next(self.job_ids)) for _ in range(jobs))
        if told:
            self.tell(bucket, topic, jobs)
        else:
            self.messages += [(bucket, topic)] * jobs

    @rule(place=PLACES, lost=st.booleans())
    @precondition(lambda self: self.messages)
    def hear(self, place: int, lost: bool) -> None:
        message = self.messages.pop(place % len(self.messages))
        if lost and self.lossy:
            self.lost = True
        else:
            self.tell(*message, 1)

    @rule(place=PLACES)
    def resync(self, place: int) -> None:
        self.reasons += len(TOPICS)
        self.matcher.resync(place % len(self.calls))

    @rule(place=PLACES)
    @precondition(lambda self: self.idle())
    def ask(self, place: int) -> None:
        idle = self.idle()
        bucket = idle[place % len(idle)]
        before = {topics: self.asked_for(topics) for topics in LISTS}
        demands = self.matcher.next(bucket)
        unfinished = self.unfinished.pop(bucket, ())
        if not demands:
            self.awake.discard(bucket)
            return
        lists = [each.queue.topics for each in self.matcher._buckets[bucket].requests]
        assert len({*lists}) == len(lists)
        others = [topics for topics in lists if topics != unfinished]
        assert others == lists[: len(others)], (
            "what a call could not finish comes last in the next one"
        )
        firsts = [self.in_matcher(topics)[0].poll.number for topics in others]
        assert firsts == sorted(firsts), "who waits longest is asked for first"
        for topics, demand in zip(lists, demands, strict=True):
            assert demand.topics == tuple(each for each in topics if each in demand.topics)
            polls_want = sum(each.poll.wanted for each in self.in_matcher(topics))
            most = polls_want - before[topics]
            assert 0 < demand.wanted <= most, "no more is asked for than is wanted"
            if topics != demand.topics:
                self.check_that_none_was_passed_over(topics, demand, before, lists)
        self.demands += len(demands)
        assert self.demands <= self.reasons, "nothing is asked for without a reason"
        counted = [] if bucket in self.slow else [self.generations[topics] for topics in lists]
        self.calls[bucket] = Call(demands, lists, self.last_number(), counted)

    @rule(place=PLACES)
    @precondition(lambda self: self.flying())
    def take_long(self, place: int) -> None:
        bucket, call = self.flight(place)
        call.counted = []
        self.slow.add(bucket)
        self.matcher.slow(bucket)

    @rule(place=PLACES, complete=st.integers(0, 4))
    @precondition(lambda self: self.flying())
    def serve(self, place: int, complete: int) -> None:
        """The store serves the call; for demands after the first `complete` ones it finds at most one job."""
        bucket, call = self.flight(place)
        if call.found is None:
            call.complete = min(complete, len(call.demands))
            call.found = [
                self.take(bucket, demand if at < call.complete else demand._replace(wanted=1))
                for at, demand in enumerate(call.demands)
            ]

    @rule(place=PLACES)
    @precondition(lambda self: self.flying())
    def deliver(self, place: int) -> None:
        bucket, call = self.flight(place)
        self.serve(place, len(call.demands))
        assert call.found is not None
        self.calls[bucket] = None
        self.slow.discard(bucket)
        waited = self.waiting()
        for client in waited:
            for at, (demand, jobs) in enumerate(zip(call.demands, call.found, strict=True)):
                was_asked_for = client.poll.number <= call.last_number
                is_dry = len(jobs) < demand.wanted and at < call.complete
                if client.topics == demand.topics and was_asked_for and is_dry:
                    client.answered.add(bucket)
        for at, (demand, jobs) in enumerate(zip(call.demands, call.found, strict=True)):
            if len(jobs) == demand.wanted or at >= call.complete:
                self.reasons += len(demand.topics)
        if call.complete < len(call.lists):
            self.unfinished[bucket] = call.lists[call.complete]
        left = self.matcher.delivered(bucket, call.found, call.complete)
        self.check_delivery(waited, call, left)
        for job in left:
            self.ready[bucket][job.topic].appendleft(job.id)
            self.messages.append((bucket, job.topic))

    @rule(place=PLACES)
    @precondition(lambda self: self.flying())
    def fail(self, place: int) -> None:
        """The call fails, before or after the store has served it; then its jobs are delivered again."""
        bucket, call = self.flight(place)
        self.calls[bucket] = None
        self.slow.add(bucket)
        for job in [job for jobs in call.found or () for job in jobs]:
            self.ready[bucket][job.topic].append(job.id)
            self.messages.append((bucket, job.topic))
        waited = self.waiting()
        self.reasons += sum(len(demand.topics) for demand in call.demands)
        self.matcher.failed(bucket)
        asked = {*call.lists}
        for client in waited:
            client.failed.add(bucket)
            if client.waits:
                asked_for = client.topics in asked and client.poll.number <= call.last_number
                assert client.patient or not asked_for, "who would not wait hears it"
            elif not client.stands:
                assert isinstance(client.outcome, BaseException)
                everywhere = not client.answered and len(client.failed) == len(self.calls)
                assert everywhere or not client.patient, "who can wait outlasts failures"

    @rule(place=PLACES, how=st.sampled_from(["leave", "leave unnoticed", "hurry", "expire"]))
    @precondition(lambda self: self.waiting())
    def end(self, place: int, how: str) -> None:
        waiting = self.waiting()
        client = waiting[place % len(waiting)]
        if client.stands and not how.startswith("leave"):
            return  # it has no deadline
        if how == "hurry":
            self.matcher.hurry(client.poll)
            if client.waits:
                client.patient = False
            else:
                assert client.outcome == []
                assert client.answered | client.failed == {*range(len(self.calls))}
        elif how == "expire":
            self.matcher.expire(client.poll)
            assert client.outcome == []
        else:
            client.poll.future.cancel()
            if how == "leave":
                self.matcher.remove(client.poll)

    @rule(place=PLACES)
    @precondition(lambda self: self.in_matcher() != self.waiting())
    def remove(self, place: int) -> None:
        gone = [each for each in self.in_matcher() if not each.waits]
        self.matcher.remove(gone[place % len(gone)].poll)

    @rule()
    def settle(self) -> None:
        """Everything is answered, and every message arrives: no poll waits beside a job."""
        self.answer_all()
        assert all(client.patient for client in self.waiting()), "who would not wait is answered"
        while self.messages:
            self.tell(*self.messages.pop(), 1)
            self.answer_all()
        if self.lost:
            self.lost = False
            for bucket in range(len(self.calls)):
                self.resync(bucket)
            self.answer_all()
        for client in self.waiting():
            for ready in self.ready:
                assert not any(ready[str(topic)] for topic in client.topics), "a wake-up is lost"

    def answer_all(self) -> None:
        while self.flying() or self.idle():
            if self.flying():
                self.deliver(0)
            else:
                self.ask(0)

    @invariant()
    def counts_those_who_wait(self) -> None:
        clients = [each for each in self.in_matcher() if not each.stands]
        assert self.matcher.waiting == len(clients)
        assert all(client.poll.queue is not None for client in self.waiting())

    @invariant()
    def forgets_no_reason_to_ask(self) -> None:
        """A sleeping bucket has nothing for polls that want more than is asked for."""
        for bucket, state in enumerate(self.matcher._buckets):
            if bucket not in self.awake and self.calls[bucket] is None:
                may_have = state.credits.keys() | state.reported
                for queue in {client.poll.queue for client in self.in_matcher()}:
                    if queue and queue.wanted > queue.asked:
                        assert not queue.unasked[bucket]
                        assert may_have.isdisjoint(queue.topics)

    @invariant()
    def note_what_is_empty(self) -> None:
        for topics in LISTS:
            self.generations[topics] += not self.in_matcher(topics)

    def teardown(self) -> None:
        for client in self.in_matcher():
            self.matcher.remove(client.poll)
        assert self.matcher.waiting == 0
        held = reachable(self.matcher)
        assert [each for each in held if isinstance(each, Poll)] == []
        in_flight = {each.queue for each in held if isinstance(each, BucketRequest)}
        assert {each for each in held if isinstance(each, WaitQueue)} == in_flight
        self.answer_all()
        assert [
            each for each in reachable(self.matcher) if isinstance(each, WaitQueue | BucketRequest)
        ] == []

    def tell(self, bucket: int, topic: str, arrived: int) -> None:
        self.reasons += arrived
        self.matcher.notify(bucket, topic, arrived)

    def check_that_none_was_passed_over(
        self,
        topics: tuple[PolledTopic, ...],
        demand: Demand,
        before: dict[tuple[PolledTopic, ...], int],
        asked: Sequence[tuple[PolledTopic, ...]],
    ) -> None:
        first = self.in_matcher(topics)[0].poll.number
        for client in self.in_matcher():
            if client.poll.number < first and not {*client.topics}.isdisjoint(demand.topics):
                wanted = sum(each.poll.wanted for each in self.in_matcher(client.topics))
                assert client.topics in asked or wanted <= before[client.topics]

    def check_delivery(self, waited: list[Client], call: Call, left: list[Reserved]) -> None:
        got: list[Reserved] = []
        for client in waited:
            if client.stands:
                got += self.take_standing(client)
                continue
            if client.waits:
                continue
            jobs = client.outcome
            assert isinstance(jobs, list)
            got += jobs
            if jobs:
                assert len(jobs) <= client.poll.wanted
                assert all(job.topic in client.topics for job in jobs)
                numbers = [each.poll.number for each in self.waiting(client.topics)]
                assert all(number >= client.poll.number for number in numbers), (
                    "first come, first served"
                )
            else:
                assert not client.patient, "who can wait is not answered with nothing"
                assert len(client.answered) == len(self.calls), "every bucket was asked"
        brought = [job.id for jobs in call.found or () for job in jobs]
        assert sorted(brought) == sorted(job.id for job in [*got, *left]), "each job has one taker"

    def take_standing(self, client: Client) -> list[Reserved]:
        """What a standing poll was given; then it is behind all others, or wants nothing more."""
        jobs = client.poll.take()
        assert client.poll.wanted >= 0
        assert all(job.topic in client.topics for job in jobs)
        if jobs and client.poll.wanted:
            assert client.poll.number == self.last_number(), "it is behind all others"
        return jobs

    def take(self, bucket: int, demand: Demand) -> list[Reserved]:
        found: list[Reserved] = []
        for topic in map(str, demand.topics):
            ready = self.ready[bucket][topic]
            while ready and len(found) < demand.wanted:
                found.append(Reserved(topic, ready.popleft(), b"", 1, "", 0, 1, None))
        return found

    def waiting(self, topics: tuple[PolledTopic, ...] | None = None) -> list[Client]:
        found = [each for each in self.clients if each.waits and topics in {None, each.topics}]
        return sorted(found, key=lambda each: each.poll.number)

    def standing(self) -> list[Client]:
        """Standing polls that have not left."""
        return [each for each in self.clients if each.stands and not each.poll.future.done()]

    def last_number(self) -> int:
        return max((each.poll.number for each in self.clients), default=0)

    def in_matcher(self, topics: tuple[PolledTopic, ...] | None = None) -> list[Client]:
        """Polls that wait, and polls that have left unnoticed, in the order of their numbers."""
        found = [
            each
            for each in self.clients
            if each.poll.queue is not None and topics in {None, each.topics}
        ]
        return sorted(found, key=lambda each: each.poll.number)

    def asked_for(self, topics: tuple[PolledTopic, ...]) -> int:
        """Jobs that calls in flight may bring to polls that wait for these topics."""
        return sum(
            demand.wanted
            for call in self.calls
            if call is not None
            for demand, asking, generation in zip(
                call.demands, call.lists, call.counted, strict=False
            )
            if asking == topics and generation == self.generations[topics]
        )

    def idle(self) -> list[int]:
        """Buckets that were woken and have no call in flight."""
        return sorted(bucket for bucket in self.awake if self.calls[bucket] is None)

    def flying(self) -> list[int]:
        return [bucket for bucket, call in enumerate(self.calls) if call is not None]

    def flight(self, place: int) -> tuple[int, Call]:
        flying = self.flying()
        bucket = flying[place % len(flying)]
        call = self.calls[bucket]
        assert call is not None
        return bucket, call


def reachable(root: object) -> list[Any]:
    """All objects that it holds, directly or not, without those of classes and functions."""
    found: dict[int, Any] = {id(root): root}
    left = [root]
    while left:
        for each in gc.get_referents(left.pop()):
            if id(each) not in found and not isinstance(each, type) and not callable(each):
                found[id(each)] = each
                left.append(each)
    return list(found.values())


async def test_a_matcher_keeps_its_promises() -> None:
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=10_000 if LONG else 100,
            stateful_step_count=50,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],  # on a busy machine
        ),
    )
