"""Judges a history by the promise of `group_order`: a group's jobs come one at a time, in order, none is lost or stuck.

A push tells `group` and `number`, the job's place in it; an end or a release tells the `attempt`. A job that a poll
brought was reserved at some time between request and answer. It is surely in hand from the answer until its worker
asks to let it go, or until its TTR can be over, which began with the request at the earliest. A job that comes
before anybody asked to end the one before it is out of order; so is one that comes again after the next has come.

What was pushed and not ended is stuck if `get` tells at the end that it is still there, else lost.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from faults.checker import CLOCK_STEP_S, DONE, ENDS, FOR_EVER, GONE, PUTS_BACK, broken
from faults.history import INVOKE, Event, Json

ENDED: Final = "finished"


class Delivery(NamedTuple):
    """A job that a poll brought."""

    number: int
    job_id: str
    attempt: int
    asked_s: float
    heard_s: float


@dataclass
class GroupVerdict:
    """What the history proves. The first four lists must be empty; they have ids of jobs."""

    out_of_order: list[str] = field(default_factory=list)
    together: list[str] = field(default_factory=list)  # in hand with another one of the group
    lost: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    groups: int = 0
    deliveries: int = 0

    def check(self) -> None:
        """Raises AssertionError if the promise was broken."""
        rules = ("out_of_order", "together", "lost", "stuck")
        shown = broken(self, rules)
        assert not shown, f"{shown} in {self.deliveries} deliveries of {self.groups} groups"


def judge_groups(events: Iterable[Event]) -> GroupVerdict:
    """The verdict on a history."""
    judgement = _Judgement()
    for event in events:
        judgement.see(event)
    return judgement.verdict()


class _Judgement:
    def __init__(self) -> None:
        self._places: dict[str, tuple[str, int, float]] = {}  # group, number and TTR of each job
        self._acknowledged: set[str] = set()
        self._asked_s: dict[int, float] = {}  # when a poll was sent
        self._deliveries: dict[str, list[Delivery]] = {}  # of each group
        self._let_go_s: dict[tuple[str, int], float] = {}  # an attempt, when its worker asked first
        self._end_asked_s: dict[str, float] = {}
        self._ends_asked: Counter[str] = Counter()
        self._ended: set[str] = set()
        self._left: dict[str, str | None] = {}  # what the server tells at the end

    def see(self, event: Event) -> None:
        if event.type == INVOKE:
            self._begin(event)
        elif event.verb == "pop":
            for named in event.jobs:
                self._deliver(named, self._asked_s[event.number], event.time_s)
        elif event.verb == "get":
            self._left |= {named["id"]: named["state"] for named in event.jobs}
        elif event.verb == "push":
            self._acknowledged |= {named["id"] for named in event.jobs if named["code"] == DONE}
        elif event.verb in ENDS:
            self._ended |= {named["id"] for named in event.jobs if self._has_ended(named)}

    def _begin(self, event: Event) -> None:
        self._asked_s[event.number] = event.time_s
        for named in event.jobs:
            if event.verb == "push":
                self._places[named["id"]] = named["group"], named["number"], named["ttr_s"]
            elif event.verb in {*ENDS, *PUTS_BACK}:
                self._let_go_s.setdefault((named["id"], named["attempt"]), event.time_s)
            if event.verb in ENDS:
                self._end_asked_s.setdefault(named["id"], event.time_s)
                self._ends_asked[named["id"]] += 1

    def _has_ended(self, named: Json) -> bool:
        """A job that is gone was ended by an end without an answer, if there was one before this."""
        return named["code"] == DONE or (
            named["code"] == GONE and self._ends_asked[named["id"]] > 1
        )

    def _deliver(self, named: Json, asked_s: float, heard_s: float) -> None:
        group, number, _ = self._places[named["id"]]
        delivery = Delivery(number, named["id"], named["attempt"], asked_s, heard_s)
        self._deliveries.setdefault(group, []).append(delivery)

    def verdict(self) -> GroupVerdict:
        verdict = GroupVerdict(groups=len({group for group, *_ in self._places.values()}))
        for deliveries in self._deliveries.values():
            verdict.deliveries += len(deliveries)
            verdict.out_of_order += self._out_of_order(deliveries)
            verdict.together += self._together(deliveries)
        left = self._acknowledged - self._ended
        verdict.stuck = [each for each in left if self._left.get(each) not in {None, ENDED}]
        verdict.lost = [each for each in left if self._left.get(each) is None]
        return verdict

    def _out_of_order(self, deliveries: list[Delivery]) -> Iterable[str]:
        ids = {each.number: each.job_id for each in deliveries}
        first_heard_s = {each.number: each.heard_s for each in reversed(deliveries)}
        for each in deliveries:
            before = ids.get(each.number - 1)
            is_too_early = each.number > 0 and (
                before is None or self._end_asked_s.get(before, FOR_EVER) > each.heard_s
            )
            if is_too_early or first_heard_s.get(each.number + 1, FOR_EVER) < each.asked_s:
                yield each.job_id

    def _together(self, deliveries: list[Delivery]) -> Iterable[str]:
        """Those that were surely in hand when another one came."""
        until_s = 0.0
        for each in sorted(deliveries, key=lambda each: each.heard_s):
            ttr_s = self._places[each.job_id][2]
            let_go_s = self._let_go_s.get((each.job_id, each.attempt), FOR_EVER)
            over_s = min(let_go_s, each.asked_s + ttr_s) - CLOCK_STEP_S
            if each.heard_s < over_s:
                if each.heard_s < until_s:
                    yield each.job_id
                until_s = max(until_s, over_s)
