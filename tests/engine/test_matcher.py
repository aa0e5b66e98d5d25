"""The matcher of waiting polls, in small histories, without a store."""

import gc
import re
import sys
from collections.abc import Callable
from itertools import combinations, count, islice
from types import FrameType
from typing import Any, Final

import pytest

from delayqueue.domain.job import CALLS, Reserved
from delayqueue.engine.matcher import Matcher
from delayqueue.engine.wait_queue import Poll, StandingPoll, WaitQueue
from delayqueue.errors import Unavailable

LONG_S: Final = 30.0


def job(job_id: str, topic: str = "t") -> Reserved:
    return Reserved(topic, job_id, b"", 1, "", 0, 60_000, None)


def ids(jobs: list[Reserved]) -> str:
    return " ".join(each.id for each in jobs)


class Histories:
    """Plays a history. Polls have capital letters, buckets numbers, topics and jobs small letters."""

    def __init__(self, buckets: int) -> None:
        self.matcher = Matcher()
        self.polls: dict[str, Poll] = {}
        self.numbers = count(1)
        self.awake: set[int] = set()
        self.buckets = 0
        for _ in range(buckets):
            self.grow()

    def grow(self) -> None:
        bucket = self.buckets
        self.buckets += 1
        self.matcher.grow(lambda: self.awake.add(bucket))

    def play(self, step: str) -> None:
        for pattern, act in self.STEPS.items():
            if found := re.fullmatch(pattern, step):
                act(self, *found.groups())
                return
        raise AssertionError(step)

    def pop(
        self,
        name: str,
        topics: str,
        wanted: str | None,
        by_priority: str | None,
        at_once: str | None,
    ) -> None:
        poll = Poll(next(self.numbers), int(wanted or 1), 0 if at_once else LONG_S)
        self.polls[name] = poll
        self.matcher.add(tuple(topics.split(",")), poll, by_priority=bool(by_priority))

    def stand(self, name: str, topics: str, wanted: str) -> None:
        poll = StandingPoll(next(self.numbers), int(wanted), tuple(topics.split(",")))
        self.polls[name] = poll
        self.matcher.add(poll.topics, poll)

    def widen(self, name: str) -> None:
        poll = self.polls[name]
        assert isinstance(poll, StandingPoll)
        self.matcher.widen(poll)

    def ask(self, bucket: str, expected: str) -> None:
        """BucketRequest as a poller does: a sleeping one does not."""
        demands = self.matcher.next(int(bucket)) if int(bucket) in self.awake else []
        asked = " ".join(f"{','.join(map(str, each.topics))}:{each.wanted}" for each in demands)
        assert (asked or "nothing") == expected
        if not demands:
            self.awake.discard(int(bucket))

    def bring(self, bucket: str, jobs: str, more: str | None) -> None:
        found = [
            [job(each) for each in demand.split() if each != "-"] for demand in jobs.split("|")
        ]
        self.left = self.matcher.delivered(int(bucket), found, 0 if more else len(found))

    def answered(self, name: str, expected: str) -> None:
        self.polls[name].future.result()  # raises if there is none
        assert (ids(self.polls[name].take()) or "nothing") == expected

    def failed(self, name: str) -> None:
        assert isinstance(self.polls[name].future.exception(), Unavailable)

    def waits(self, name: str) -> None:
        assert not self.polls[name].future.done()

    def leaves(self, name: str) -> None:
        self.polls[name].future.cancel()

    def nobody_takes(self, expected: str) -> None:
        assert (ids(self.left) or "nothing") == expected

    STEPS: Final[dict[str, Callable[..., Any]]] = {
        r"(\w) pops ([\w,]+)(?: (\d+))?( by priority)?( at once)?": pop,
        r"(\w) consumes ([\w,]+) (\d+)": stand,
        r"(\w) takes one more": widen,
        r"ask (\d) -> (.+)": ask,
        r"(\d) brings (.+?)( and has more)?": bring,
        r"(\d) fails": lambda self, bucket: self.matcher.failed(int(bucket)),
        r"(\d) is slow": lambda self, bucket: self.matcher.slow(int(bucket)),
        r"(\d) has (\d+) (\w)": lambda self, bucket, count, topic: self.matcher.notify(
            int(bucket), topic, int(count)
        ),
        r"resync (\d)": lambda self, bucket: self.matcher.resync(int(bucket)),
        r"(\w)'s time is over": lambda self, name: self.matcher.hurry(self.polls[name]),
        r"(\w) expires": lambda self, name: self.matcher.expire(self.polls[name]),
        r"(\w) leaves": leaves,
        r"(\w) is removed": lambda self, name: self.matcher.remove(self.polls[name]),
        r"a bucket more": lambda self: self.grow(),
        r"close": lambda self: self.matcher.close(),
        r"(\w) gets (.+)": answered,
        r"(\w) hears of the failure": failed,
        r"(\w) waits": waits,
        r"nobody takes (.+)": nobody_takes,
        r"(\d+) wait": lambda self, count: self._count(int(count)),
    }

    def _count(self, count: int) -> None:
        waiting = [poll for poll in self.polls.values() if poll.queue is not None]
        assert len(waiting) == count
        clients = [poll for poll in waiting if not isinstance(poll, StandingPoll)]
        assert self.matcher.waiting == len(clients)


@pytest.mark.parametrize(
    ("buckets", "history"),
    [
        # what is asked for
        (1, "A pops t; ask 0 -> t:1; 0 brings a; A gets a; ask 0 -> nothing; 0 wait"),
        (1, "A pops t; B pops u; C pops t; A leaves; A is removed; ask 0 -> u:1 t:1"),
        (1, "A pops t,u; ask 0 -> t,u:1; 0 brings -; A waits; 0 has 1 u; ask 0 -> u:1"),
        (1, ("A pops t,u; ask 0 -> t,u:1; 0 brings -; 0 has 1 u; 0 has 1 t; ask 0 -> t:1; "
            "0 brings a; A gets a")),  # the order of its list
        (1, ("A pops t,u by priority; ask 0 -> t,u:1; 0 brings -; 0 has 1 u; 0 has 1 t; "
            "ask 0 -> t,u:1")),
        # polls with different lists: those who wait longest ask, for what was reported
        (1, ("A pops t,u; B pops u,t; C pops u; ask 0 -> t,u:1 u,t:1 u:1; 0 brings - | - | -; "
            "0 has 1 u; ask 0 -> u:1; 0 brings a; A gets a; 0 has 2 u; ask 0 -> u:1 u:1; "
            "0 brings b | c; B gets b; C gets c")),
        (1, ("A pops t; B pops t,u; C pops t; D pops u,t; ask 0 -> t:2 t,u:1 u,t:1; "
            "0 brings - | - | -; A leaves; A is removed; 0 has 2 t; ask 0 -> t:1 t:1; "
            "0 brings b | c; B gets b; C gets c; D waits")),
        (1, ("A pops t; B pops t,u; ask 0 -> t:1 t,u:1; 0 brings - | -; 0 has 1 t; 0 has 1 t; "
            "ask 0 -> t:1 t:1")),
        # a list for whose polls enough is asked elsewhere has its next turn
        (2, ("A pops t,v; B pops t,v; C pops t,u; ask 0 -> t,v:2 t,u:1; 0 brings - | -; "
            "ask 1 -> t,v:2 t,u:1; 1 brings - | -; A leaves; A is removed; 0 has 1 v; ask 0 -> v:1; "
            "1 has 1 t; ask 1 -> t:1; 1 brings c; C gets c; 0 brings -; 1 has 1 t; ask 1 -> t:1; "
            "1 brings b; B gets b")),
        # what was not needed, and what a failed call asked for, is for the next one who waits
        (1, ("A pops t; B pops t,u; ask 0 -> t:1 t,u:1; 0 brings - | -; 0 has 1 t; ask 0 -> t:1; "
            "A leaves; A is removed; 0 fails; ask 0 -> t:1; 0 brings b; B gets b")),
        (1, ("A pops t; B pops t,u; ask 0 -> t:1 t,u:1; 0 brings - | -; 0 has 5 t; "
            "ask 0 -> t:1 t:1; 0 brings a | -; A gets a; B waits; ask 0 -> nothing")),
        # a standing poll: once a bucket had nothing more, it is asked only for what it reports
        (1, ("A consumes t 3; ask 0 -> t:3; 0 brings a; A gets a; ask 0 -> nothing; 0 has 1 t; "
            "ask 0 -> t:1; 0 brings b; A gets b; ask 0 -> nothing; A takes one more; "
            "ask 0 -> nothing; 0 has 3 t; ask 0 -> t:2; 0 brings c d; A gets c d; 0 wait")),
        (1, ("A consumes t 2; ask 0 -> t:2; 0 brings -; B pops u; ask 0 -> u:1; 0 brings -; "
            "0 has 1 t; ask 0 -> t:1; C pops v; 0 brings a; ask 0 -> v:1; 0 brings -; 0 has 1 t; "
            "A takes one more; ask 0 -> t:1; 0 brings b; A gets a b; ask 0 -> nothing")),
        (1, ("A consumes t 3; ask 0 -> t:3; 0 brings -; B pops u; ask 0 -> u:1; 0 brings -; "
            "0 has 2 t; ask 0 -> t:2; C pops v; 0 brings a; A gets a; ask 0 -> v:1; 0 brings -; "
            "A takes one more; ask 0 -> nothing")),
        # what it wants more is asked for together, while more may be there
        (1, ("A consumes t 1; A takes one more; A takes one more; ask 0 -> t:3; 0 brings a b c; "
            "A gets a b c; 0 wait")),
        # and what another bucket has for the others is still to be asked
        (2, ("A consumes t 3; B pops t at once; ask 0 -> t:4; 0 brings a; A gets a; B waits; "
            "ask 1 -> t:3; 1 brings b; B gets b")),
        (1, "A consumes t 3; ask 0 -> t:3; A leaves; 0 brings a; nobody takes a; 0 wait"),
        (1, ("A consumes t,u 3; B pops u,t; ask 0 -> t,u:3 u,t:1; 0 brings a | -; A gets a; "
            "0 has 1 t; ask 0 -> t:1; 0 brings b; B gets b; 0 has 1 u; ask 0 -> u:1; 0 brings c; "
            "A gets c")),
        # no more is asked for than is wanted, from each bucket in turn
        (2, ("A pops t; ask 0 -> t:1; ask 1 -> nothing; 0 brings -; ask 1 -> t:1; 1 brings a; "
            "A gets a")),
        # nor more than was announced
        (1, "A pops t 2000; ask 0 -> t:1000; 0 brings -; ask 0 -> nothing"),
        # what arrives while a call is under way is not forgotten
        (1, ("A pops t; ask 0 -> t:1; 0 brings -; B pops t; ask 0 -> t:1; 0 brings a; A gets a; "
            "ask 0 -> t:1")),
        (1, "A pops t 2; ask 0 -> t:2; 0 brings - and has more; ask 0 -> t:2"),
        # what a call could not finish comes last in the next one
        (1, ("A pops t; B pops u; C pops v; ask 0 -> t:1 u:1 v:1; 0 brings - | - | - and has more; "
            "ask 0 -> u:1 v:1 t:1; 0 brings a | b | - and has more; B gets a; C gets b; ask 0 -> t:1; "
            "0 brings c; A gets c")),
        # a poll that does not wait
        (2, ("A pops t at once; ask 0 -> t:1; 0 brings -; A waits; ask 1 -> t:1; 1 brings -; "
            "A gets nothing")),
        (1, ("A pops t at once; ask 0 -> t:1; B pops t at once; 0 brings -; A gets nothing; "
            "B waits; ask 0 -> t:1")),
        # failures
        (1, ("A pops t; ask 0 -> t:1; B pops t; 0 fails; A hears of the failure; "
            "B hears of the failure")),
        (2, ("A pops t; ask 0 -> t:1; 0 fails; B pops t; ask 1 -> t:2; 1 fails; "
            "A hears of the failure; B waits")),
        # a standing poll goes on if it has yet to take what it was given
        (2, ("A consumes t 3; ask 0 -> t:3; 0 fails; ask 1 -> t:3; 1 is slow; ask 0 -> t:3; "
            "0 brings a and has more; 1 fails; 1 wait; A gets a; A waits; ask 0 -> t:2; "
            "0 brings b c; A gets b c; 0 wait")),
        (2, ("A consumes t 3; ask 0 -> t:3; 0 fails; ask 1 -> t:3; 1 is slow; ask 0 -> t:3; "
            "0 brings a and has more; A gets a; 1 fails; A hears of the failure; 0 wait")),
        # nothing relies on a bucket that is slow or fails
        (2, ("A pops t; ask 0 -> t:1; 0 fails; ask 0 -> t:1; ask 1 -> t:1; 1 brings -; "
            "0 brings -; A waits")),
        (1, "A pops t; 0 is slow; ask 0 -> t:1; 0 brings -; B pops t; ask 0 -> t:1"),
        # a poll whose time is over, and one that leaves
        (1, "A pops t; A's time is over; A waits; ask 0 -> t:1; 0 brings -; A gets nothing"),
        (2, ("A pops t; ask 0 -> t:1; 0 brings -; ask 1 -> t:1; 1 fails; A waits; "
            "A's time is over; A gets nothing")),
        (1, ("A pops t; A expires; A gets nothing; A expires; A's time is over; A is removed; "
            "0 wait")),
        (1, ("A pops t; ask 0 -> t:1; A leaves; A is removed; B pops t; 0 brings a; "
            "nobody takes a; B waits; ask 0 -> t:1")),
        # the rest
        (1, ("A pops t; ask 0 -> t:1; 0 brings -; resync 0; ask 0 -> t:1; 0 brings -; resync 0; "
            "ask 0 -> t:1")),
        (1, ("A pops t 2; ask 0 -> t:2; 0 brings -; resync 0; ask 0 -> t:2; 0 brings -; 0 has 1 t; "
            "ask 0 -> t:1")),
        (1, ("A pops t,u; B pops t; ask 0 -> t,u:1 t:1; 0 brings - | -; resync 0; ask 0 -> t,u:1; "
            "0 brings a; A gets a; ask 0 -> t:1; 0 brings b; B gets b")),
        (1, ("A pops t; ask 0 -> t:1; 0 brings -; a bucket more; ask 1 -> t:1; 1 brings a; "
            "A gets a")),
        (1, ("A pops t; B pops u; ask 0 -> t:1 u:1; close; A gets nothing; B gets nothing; "
            "0 brings a | b; nobody takes a b")),
    ],
)  # fmt: skip
async def test_a_history(buckets: int, history: str) -> None:
    histories = Histories(buckets)
    for step in history.split("; "):
        histories.play(step)


async def test_a_job_with_a_call_is_asked_for_once() -> None:
    """It uses up its report, which is not by its topic."""
    matcher, poll = Matcher(), StandingPoll(1, 3, (CALLS,))
    matcher.grow(lambda: None)
    matcher.add((CALLS,), poll)
    assert matcher.next(0)
    matcher.delivered(0, [[]], 1)
    matcher.notify(0, CALLS, 1)
    assert [demand.wanted for demand in matcher.next(0)] == [1]
    matcher.delivered(0, [[job("a")]], 1)
    assert (ids(poll.take()), matcher.next(0)) == ("a", [])


def lines_run(act: Callable[[], object]) -> int:
    """How many lines of the engine the act runs, each as often as a loop runs it."""
    lines = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace if "delayqueue/engine/" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return lines


def costs(others: int, buckets: str) -> dict[str, int]:
    """The lines that each event runs while this many wait whom the buckets have answered, failed, or left hanging."""
    matcher = Histories(3).matcher
    for number in range(1, others + 1):
        matcher.add(("t",), Poll(number, 1, LONG_S))
    for bucket, state in enumerate(buckets.split()):
        matcher.slow(bucket)  # so that all buckets are asked for all polls
        assert matcher.next(bucket)
        if state == "answered":
            matcher.delivered(bucket, [[]], 1)
        elif state == "failed":
            matcher.failed(bucket)
    younger = [Poll(others + 1 + number, 1, number * LONG_S) for number in range(3)]
    events: dict[str, Callable[[], object]] = {
        "a poll arrives": lambda: matcher.add(("t",), younger[1]),
        "another arrives": lambda: matcher.add(("t",), younger[2]),
        "one leaves": lambda: matcher.remove(younger[2]),
        "one's time is over": lambda: matcher.hurry(younger[1]),
        "a message": lambda: matcher.notify(1, "t", 1),
        "a resync": lambda: matcher.resync(1),
        "a call": lambda: matcher.next(1),
        "it is slow": lambda: matcher.slow(1),
        "it brings a job and has more": lambda: matcher.delivered(1, [[job("a")]], 0),
        "the next call": lambda: matcher.next(1),
        "it fails": lambda: matcher.failed(1),
        "the one after it": lambda: matcher.next(1),
        "it brings nothing": lambda: matcher.delivered(1, [[]], 1),
    }
    return {name: lines_run(act) for name, act in events.items()}


@pytest.mark.parametrize(
    "buckets", ["answered answered answered", "answered answered hung", "failed failed hung"]
)
async def test_no_event_costs_more_when_more_polls_wait(buckets: str) -> None:
    few, many = costs(10, buckets), costs(2000, buckets)
    assert min(few.values()) > 0
    assert many == few


async def test_a_call_for_many_topics_is_followed_by_calls_for_the_others() -> None:
    matcher, topics = Histories(1).matcher, [f"topic-{number}" for number in range(1100)]
    for number, topic in enumerate(topics):
        matcher.add((topic,), Poll(number + 1, 1, LONG_S))
    for happens in (None, matcher.notify):
        if happens:
            for topic in topics:
                happens(0, topic, 1)
        asked: list[str] = []
        while demands := matcher.next(0):
            asked += [str(demand.topics[0]) for demand in demands]
            matcher.delivered(0, [[] for _ in demands], len(demands))
        assert sorted(asked) == sorted(topics)


def lists(count: int) -> list[tuple[str, ...]]:
    """Different lists of 17 of 20 topics."""
    topics = [f"topic-{number}" for number in range(20)]
    lacking = islice(combinations(topics, 3), count)
    return [tuple(topic for topic in topics if topic not in lack) for lack in lacking]


def waiting_for_lists(count: int) -> Histories:
    """A poll waits for each of that many lists, and all buckets have said that they have nothing."""
    histories = Histories(3)
    for number, each in enumerate(lists(count)):
        histories.matcher.add(each, Poll(number + 1, 1, LONG_S))
    for bucket in range(3):
        while demands := histories.matcher.next(bucket):
            histories.matcher.delivered(bucket, [[] for _ in demands], len(demands))
    return histories


async def test_no_job_costs_more_when_polls_wait_for_more_lists() -> None:
    costs: list[list[int]] = []
    for number in (10, 500):
        matcher = waiting_for_lists(number).matcher
        events: list[Callable[[], object]] = [
            lambda: matcher.notify(1, "topic-19", 1),  # noqa: B023
            lambda: matcher.next(1),  # noqa: B023
            lambda: matcher.delivered(1, [[job("a", "topic-19")]], 1),  # noqa: B023
            lambda: matcher.next(1),  # noqa: B023
        ]
        costs.append([lines_run(act) for act in events])
    assert costs[0] == costs[1]
    assert min(costs[0]) > 0


async def test_a_job_or_a_resync_asks_for_each_topic_once_for_all_lists() -> None:
    matcher = waiting_for_lists(500).matcher
    matcher.notify(1, "topic-19", 1)
    (demand,) = matcher.next(1)
    assert demand == (("topic-19",), 1, False)
    matcher.delivered(1, [[]], 1)
    matcher.resync(1)
    demands = matcher.next(1)
    asked = [str(topic) for demand in demands for topic in demand.topics]
    assert sorted(asked) == sorted(f"topic-{number}" for number in range(20))
    matcher.delivered(1, [[] for _ in demands], len(demands))
    assert matcher.next(1) == []


async def test_polls_that_came_and_went_leave_nothing_behind() -> None:
    matcher, topics = Histories(1).matcher, tuple(f"topic-{number}" for number in range(20))
    matcher.add(topics, Poll(1, 1, LONG_S))
    gc.collect()
    before = sum(isinstance(each, WaitQueue) for each in gc.get_objects())
    newest = Poll(2, 1, LONG_S)
    matcher.add(topics[1:], newest)
    for number in range(3, 1000):  # one of them waits at any time
        poll, newest = newest, Poll(number, 1, LONG_S)
        matcher.add(topics[number % 2 + 1 :], newest)
        matcher.remove(poll)
    matcher.next(0)
    gc.collect()
    after = sum(isinstance(each, WaitQueue) for each in gc.get_objects())
    assert after - before < 10
