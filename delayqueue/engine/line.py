"""One waiting poll, and the line of those that wait for the same topics. No IO."""

import asyncio
from collections import OrderedDict

from delayqueue.errors import Unavailable
from delayqueue.job import Reserved


class Poll:
    """One client that waits for up to `wanted` jobs. Polls are numbered in the order in which they came."""

    __slots__ = (
        "asked_buckets",
        "deadline",
        "failed_buckets",
        "future",
        "number",
        "patient",
        "wanted",
    )

    def __init__(self, number: int, wanted: int, wait_s: float) -> None:
        loop = asyncio.get_running_loop()
        self.number = number
        self.wanted = wanted
        self.patient = wait_s > 0  # False: is answered as soon as every bucket was asked once
        self.deadline = loop.time() + wait_s  # loop time
        self.asked_buckets = 0  # a bit each: thousands of polls wait, and a set takes 200 bytes
        self.failed_buckets = 0
        self.future: asyncio.Future[list[Reserved]] = loop.create_future()

    def __lt__(self, other: "Poll") -> bool:
        """Whether its deadline is earlier."""
        return self.deadline < other.deadline

    def answer(self, jobs: list[Reserved]) -> None:
        """Answer the poll, unless it is answered or gone."""
        if not self.future.done():
            self.future.set_result(jobs)

    def fail(self) -> None:
        """Tell the poll that the store is unavailable, unless it is answered or gone."""
        if not self.future.done():
            self.future.set_exception(Unavailable())

    def taken(self) -> list[Reserved]:
        """The jobs that it was answered with."""
        future = self.future
        if not future.done() or future.cancelled() or future.exception():
            return []
        return future.result()


class Line:
    """The polls that wait for the same topics, in the order of arrival."""

    __slots__ = ("asked", "fresh", "hints", "polls", "topics", "wanted")

    def __init__(self, topics: tuple[str, ...], buckets: int) -> None:
        self.topics = topics
        self.polls: OrderedDict[Poll, None] = OrderedDict()
        self.fresh: dict[Poll, None] = {}  # those that not every bucket was asked for yet
        self.wanted = 0  # jobs that the polls would take
        self.asked = 0  # jobs that calls in flight may bring
        self.hints = [0] * buckets  # jobs that each bucket may have for this line

    @property
    def last_number(self) -> int:
        """The number of the poll that came last; the line is not empty."""
        return next(reversed(self.polls)).number

    @property
    def first_number(self) -> int:
        """The number of the poll that has waited longest; the line is not empty."""
        return next(iter(self.polls)).number

    def add(self, poll: Poll) -> None:
        """A poll arrives."""
        self.polls[poll] = self.fresh[poll] = None
        self.wanted += poll.wanted

    def drop(self, poll: Poll) -> None:
        """A poll is answered or gone."""
        if poll in self.polls:
            del self.polls[poll]
            self.fresh.pop(poll, None)
            self.wanted -= poll.wanted

    def expire(self, poll: Poll) -> None:
        """The poll's time is over: it is answered as soon as every bucket was asked once."""
        if (poll.asked_buckets | poll.failed_buckets).bit_count() == len(self.hints):
            poll.answer([])
        else:
            poll.patient = False

    def hand_out(self, jobs: list[Reserved]) -> list[Reserved]:
        """Give jobs to the polls that wait; returns what nobody is left to take."""
        while jobs and self.polls:
            poll = next(iter(self.polls))
            self.drop(poll)
            if not poll.future.done():
                poll.answer(jobs[: poll.wanted])
                jobs = jobs[poll.wanted :]
        return jobs

    def note_dry(self, bucket: int, last_number: int) -> None:
        """The bucket has nothing more for the polls up to `last_number`."""
        for poll in [poll for poll in self.fresh if poll.number <= last_number]:
            poll.asked_buckets |= 1 << bucket
            if poll.asked_buckets.bit_count() == len(self.hints):
                del self.fresh[poll]
                if not poll.patient:
                    self.drop(poll)
                    poll.answer([])
        if not self.fresh:
            self.fresh.clear()  # gives back the memory of thousands

    def note_failure(self, bucket: int) -> None:
        """The bucket's store failed: polls that no bucket ever answered hear of it, also those that came meanwhile.

        Who would not wait hears it of any bucket: nobody can tell him that nothing is there.
        """
        for poll in list(self.fresh):
            poll.failed_buckets |= 1 << bucket
            everywhere = not poll.asked_buckets and poll.failed_buckets.bit_count() == len(
                self.hints
            )
            if everywhere or not poll.patient:
                self.drop(poll)
                poll.fail()
