"""One waiting poll, the queue of polls for the same topics, and the queues that wait for a topic. No IO."""

import asyncio
import math
from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from collections.abc import Container, Iterator
from operator import attrgetter, itemgetter

from delayqueue.domain.job import PolledTopic, Reserved
from delayqueue.errors import Text, Unavailable

_number = attrgetter("number")
_entry_number = itemgetter(0)


class Poll:
    """A client that waits for up to `wanted` jobs. Polls are numbered in order of arrival."""

    is_client = True

    __slots__ = ("_jobs", "deadline", "future", "grace_s", "number", "patient", "queue", "wanted")

    def __init__(self, number: int, wanted: int, wait_s: float, grace_s: float = 0) -> None:
        loop = asyncio.get_running_loop()
        self.number = number
        self.wanted = wanted
        self.patient = wait_s > 0  # False: is answered as soon as every bucket was asked once
        self.deadline = loop.time() + wait_s  # loop time
        self.grace_s = grace_s  # after the deadline, for buckets that have not been asked yet
        self.queue: WaitQueue | None = None  # None = it is not waiting: not yet, or no longer
        self.future: asyncio.Future[None] = loop.create_future()  # done = answered or gone
        self._jobs: list[Reserved] | None = None

    def answer(self, jobs: list[Reserved]) -> None:
        """Answer the poll, unless it is answered or gone."""
        if not self.future.done():
            self._jobs = jobs
            self.future.set_result(None)

    def fail(self, why: Text) -> None:
        """Tell the poll, which is neither answered nor gone, why the store is unavailable."""
        self.future.set_exception(Unavailable(why))
        self.future.exception()  # nobody may be left to hear it

    def take(self) -> list[Reserved]:
        """The jobs of its answer, once: an answered poll can live until its deadline, and a job be large."""
        jobs, self._jobs = self._jobs, None
        return jobs or []


class StandingPoll(Poll):
    """A poll for the server's own work, which goes on after an answer: it is given jobs while it wants more.

    Its future is done whenever there is something to take; take() puts a new one in its place.
    """

    is_client = False

    __slots__ = ("topics",)

    def __init__(self, number: int, wanted: int, topics: tuple[PolledTopic, ...]) -> None:
        super().__init__(number, wanted, math.inf)
        self.topics = topics

    def answer(self, jobs: list[Reserved]) -> None:
        """Give the poll jobs, and lower the number that it wants."""
        self.wanted -= len(jobs)
        self._jobs = [*(self._jobs or ()), *jobs]
        if not self.future.done():
            self.future.set_result(None)

    def take(self) -> list[Reserved]:
        """The jobs that came since the last time."""
        if self.future.done():
            self.future = asyncio.get_running_loop().create_future()
        return super().take()


class WaitQueue:
    """The polls for the same topics, first come, first served. Only the matcher changes it (matcher.py).

    Polls arrive in the order of their numbers, so what a bucket has said holds for all polls up to a number, and no
    poll has to remember it.
    """

    __slots__ = (
        "asked",
        "by_priority",
        "dry_up_to",
        "failed_up_to",
        "first_number",
        "impatient",
        "polls",
        "told_up_to",
        "topics",
        "unasked",
        "wanted",
    )

    def __init__(self, topics: tuple[PolledTopic, ...], buckets: int, *, by_priority: bool) -> None:
        self.topics = topics
        self.by_priority = by_priority  # the most urgent job of all topics first
        # a dict is slow to find its first key again and again
        self.polls: OrderedDict[Poll, None] = OrderedDict()
        self.first_number = 0  # of the poll that has waited longest; 0 = the queue is empty
        self.impatient: list[Poll] = []  # those that are not patient, by number
        self.wanted = 0  # jobs that the polls would take
        self.asked = 0  # jobs that calls in flight may bring
        self.told_up_to = 0  # the last poll that could have heard that all buckets failed
        # For each bucket:
        self.unasked = [0] * buckets  # jobs for polls that it was not asked for yet
        self.dry_up_to = [0] * buckets  # the last poll that it had nothing for
        self.failed_up_to = [0] * buckets  # the last poll for which it failed

    @property
    def last_number(self) -> int:
        """The number of the poll that came last; the queue is not empty."""
        return next(reversed(self.polls)).number

    def add(self, poll: Poll) -> None:
        """Add a poll, numbered higher than any before."""
        poll.queue = self
        if not self.polls:
            self.first_number = poll.number
        self.polls[poll] = None
        self.wanted += poll.wanted
        if not poll.patient:
            self.impatient.append(poll)

    def remove(self, poll: Poll) -> None:
        """Remove a poll that is answered or gone."""
        poll.queue = None
        del self.polls[poll]
        if poll.number == self.first_number:
            self.first_number = next(iter(self.polls)).number if self.polls else 0
        self.wanted -= poll.wanted
        if not poll.patient:
            at = bisect_left(self.impatient, poll.number, key=_number)
            if self.impatient[at : at + 1] == [poll]:
                del self.impatient[at]

    def move_back(self, poll: Poll, given: int, number: int) -> None:
        """A poll that was given some jobs goes on behind the others, numbered as the last poll of all queues.

        Buckets that had nothing more for any poll here have told since then what they have.
        """
        told_all = self.last_number
        self.dry_up_to = [max(number, dry) if dry >= told_all else dry for dry in self.dry_up_to]
        self.wanted -= given
        self.polls.move_to_end(poll)
        poll.number = number
        self.first_number = next(iter(self.polls)).number

    def widen(self, poll: Poll) -> None:
        """Let the poll take one job more. A bucket that had nothing more for it reports new jobs by itself."""
        self.wanted += 1
        poll.wanted += 1
        for bucket, dry in enumerate(self.dry_up_to):
            if dry < poll.number:
                self.unasked[bucket] += 1

    def hurry(self, poll: Poll) -> bool:
        """Let the poll wait only for its first answer of each bucket; returns whether it has had them all."""
        marks = zip(self.dry_up_to, self.failed_up_to, strict=True)
        if all(poll.number <= max(dry, failed) for dry, failed in marks):
            return True
        if poll.patient:
            poll.patient = False
            insort(self.impatient, poll, key=_number)
        return False

    def note_dry(self, bucket: int, number: int) -> list[Poll]:
        """Note that the bucket has no jobs for the polls up to this number; returns those whose wait ends."""
        self.dry_up_to[bucket] = max(number, self.dry_up_to[bucket])
        if not self.impatient:
            return []
        end = bisect_right(self.impatient, min(self.dry_up_to), key=_number)
        over = self.impatient[:end]
        del self.impatient[:end]
        return over

    def note_rest(self, bucket: int, unasked: int) -> None:
        """Note that first requests lacked this many jobs, although the bucket may have them."""
        unasked = self.unasked[bucket] + max(unasked, 0)
        if self.last_number > self.dry_up_to[bucket]:  # older polls took what it brought
            unasked = max(unasked, 1)
        self.unasked[bucket] = unasked

    def note_failure(self, bucket: int, number: int) -> list[Poll]:
        """The bucket's store failed polls up to that number; returns those that must be told.

        These are the polls that would not wait, because nobody can say that no job is ready, and those that all buckets
        have failed and none has answered.
        """
        self.failed_up_to[bucket] = number
        told, self.impatient = self.impatient, []
        answered_up_to, failed_up_to = max(self.dry_up_to), min(self.failed_up_to)
        if failed_up_to > max(answered_up_to, self.told_up_to):
            self.told_up_to = failed_up_to
            for poll in reversed(self.polls):
                if poll.number <= answered_up_to:
                    break
                if poll.number <= failed_up_to:
                    told.append(poll)
        return told


class TopicQueues:
    """The open wait queues of a topic, of which there is at least one. Only the matcher changes it (matcher.py).

    They are in the order of their first polls. A queue whose first poll is gone, or that is closed, keeps its place
    until takers() comes to it: so the cost of a leaving poll does not grow with the number of topics and queues.
    """

    __slots__ = ("_entries", "queues")

    def __init__(self, queue: WaitQueue) -> None:
        self.queues = 1  # how many they are
        self._entries = [(queue.first_number, queue)]  # by the number of what was the first poll

    def open(self, queue: WaitQueue) -> None:
        """Add a queue, whose only poll is the youngest of all."""
        self._entries.append((queue.first_number, queue))
        self.queues += 1

    def close(self) -> None:
        """Remove one of several queues: it has no polls any more."""
        self.queues -= 1
        if len(self._entries) > 2 * self.queues:
            self._entries = [entry for entry in self._entries if entry[1].polls]

    def takers(self, topic: PolledTopic, credited: Container[PolledTopic]) -> Iterator[WaitQueue]:
        """The queues that want more than is asked for, the longest wait first, while this topic is credited."""
        entries, at = self._entries, 0
        while topic in credited and at < len(entries):
            number, queue = entries[at]
            if number == queue.first_number:
                if queue.wanted > queue.asked:
                    yield queue
                at += 1
            else:
                del entries[at]
                if queue.polls:
                    insort(entries, (queue.first_number, queue), key=_entry_number)
