"""Judges a history like Jepsen's total-queue checker, and by the promises of docs/reliability.md.

With A = attempted pushes, E = acknowledged pushes, D = deliveries that were finished or deleted: lost = E - D and
unexpected = delivered - A must be empty; recovered = (D and A) - E is only reported. Besides: nothing is delivered
before it is due on the store's clock; no delivery begins after an acknowledged finish or delete; a second delivery
needs a TTR that ran out since the first, or a release, a kick or another push of the job (also one of unknown outcome).
A TTR begins when the poll was sent; or, if the store was frozen then, when that began: what it had reserved
before goes to whichever poll waits when it answers. A store with appendfsync everysec that is killed forgets what it
has answered and not written: UNWRITTEN_S at most.

An id can be pushed again. What got a 503 can still be done for SETTLED_S, and what got no answer for ever; after that
it must not be: neither end a job that was pushed since, nor bring back one that has ended since.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from faults.history import FREEZE, INFO, INVOKE, KILL_EVERYSEC, THAW, Event, Json

# two clocks are read one after the other, and the store's has milliseconds
CLOCK_STEP_S: Final = 0.002
SETTLED_S: Final = 10.0  # after a 503: docs/reliability.md, "What a 503 means"
# While a sync of its file runs, Redis answers and puts off its writes, for up to two seconds (flushAppendOnlyFile)
UNWRITTEN_S: Final = 2.5
FOR_EVER: Final = float("inf")
SETTLE_S: Final = 0.1  # a clock that jumped may show the old time, a frozen store not answer
DONE: Final = 0
GONE: Final = 2  # "no such job"
UNAVAILABLE: Final = 6
ENDS: Final = ("finish", "delete")
PUTS_BACK: Final = ("release", "kick", "reschedule")
MOST_SHOWN: Final = 5


def broken(verdict: object, rules: Iterable[str]) -> dict[str, tuple[int, list[str]]]:
    """The rules that a verdict has ids for: how many, and the first ones."""
    found = {rule: ids for rule in rules if (ids := getattr(verdict, rule))}
    return {rule: (len(ids), sorted(ids)[:MOST_SHOWN]) for rule, ids in found.items()}


@dataclass
class Verdict:
    """What the history proves. The first five lists must be empty."""

    lost: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    early: list[str] = field(default_factory=list)
    after_end: list[str] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)
    attempted: int = 0
    acknowledged: int = 0
    delivered: int = 0
    duplicates: int = 0
    recovered: int = 0
    # operations without an answer, or with 503: nobody knows whether they were done
    unknown: int = 0
    # of first deliveries, on the store's clock
    lateness_ms: list[float] = field(default_factory=list)

    def check(self, *, but: Sequence[str] = ()) -> None:
        """Raises AssertionError if a promise was broken, `but` for those that are only counted."""
        rules = {"lost", "unexpected", "early", "after_end", "unexplained"} - set(but)
        shown = broken(self, rules)
        assert not shown, f"{shown} of {self.acknowledged} acknowledged jobs"

    def figures(self) -> Json:
        """The counts, for the matrix."""
        return {
            "jobs": self.acknowledged,
            "lost": len(self.lost),
            "duplicates": self.duplicates,
            "unexplained": len(self.unexplained),
            "recovered": self.recovered,
            "unanswered": self.unknown,
        }

    def late_ms(self, share: float) -> float:
        """The lateness that this share of the first deliveries did not exceed, in ms."""
        ordered = sorted(self.lateness_ms)
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1)


@dataclass
class _Job:
    """What is known so far about the job that an id names now."""

    pushes: list[tuple[float, float]] = field(default_factory=list)  # when sent, and its delay
    acknowledged: bool = False
    acknowledged_s: float = 0.0  # the last push
    delivered_s: float = 0.0  # the last time
    ttr_s: float = 0.0  # the shortest
    deliveries: int = 0
    held_from_s: float = 0.0  # since when the last delivery can hold it, on the store's clock
    excuses: int = 0  # deliveries that may come before a TTR has run out
    ended_s: float | None = None  # an end was acknowledged
    may_have_ended: bool = False  # an end was acknowledged beside a push, or one may come late
    end_unknown: bool = False  # an end was requested, with unknown outcome
    under_way: int = 0  # pushes of the id without an outcome so far
    pushed_until_s: float = 0.0  # until when one of the others can be done
    ended_until_s: float = 0.0  # until when an end of unknown outcome can be done


def judge(events: Iterable[Event]) -> Verdict:
    """The verdict on a history."""
    judgement = _Judgement()
    for event in events:
        judgement.see(event)
    return judgement.verdict()


class _Judgement:
    def __init__(self) -> None:
        self._jobs: dict[str, _Job] = {}
        self._open: dict[int, Event] = {}
        self._clocks: list[tuple[float, float]] = []  # since when, offset
        self._frozen_s = (0.0, 0.0)  # the last time: from when to when
        self._verdict = Verdict()
        self._delivered: set[str] = set()
        self._acknowledged: set[str] = set()

    def see(self, event: Event) -> None:
        if event.verb == "clock":
            self._clocks.append((event.time_s, event.note["offset_s"]))
        elif event.verb == "fault":
            self._break(event.note["what"], event.time_s)
        elif event.type == INVOKE:
            self._open[event.number] = event
            self._begin(event)
        elif event.number:
            self._end(self._open.pop(event.number), event)

    def _break(self, what: str, time_s: float) -> None:
        if what == FREEZE:
            self._frozen_s = (time_s, float("inf"))
        elif what == THAW:
            self._frozen_s = (self._frozen_s[0], time_s)
        elif what == KILL_EVERYSEC:
            for job in self._jobs.values():
                _forget(job, time_s - UNWRITTEN_S)

    def verdict(self) -> Verdict:
        for event in self._open.values():  # they never ended
            self._unknown(event, FOR_EVER)
        verdict = self._verdict
        for job_id, job in self._jobs.items():
            acknowledged = job_id in self._acknowledged
            verdict.attempted += bool(job.pushes)
            verdict.acknowledged += acknowledged
            if job.acknowledged and job.ended_s is None and not job.may_have_ended:
                verdict.lost.append(job_id)
            verdict.recovered += job.ended_s is not None and bool(job.pushes) and not acknowledged
        verdict.unexpected += sorted(
            job_id for job_id in self._delivered if not self._job(job_id).pushes
        )
        verdict.delivered = len(self._delivered)
        return verdict

    def _job(self, job_id: str) -> _Job:
        return self._jobs.setdefault(job_id, _Job())

    def _begin(self, event: Event) -> None:
        for named in event.jobs:
            job = self._job(named["id"])
            if event.verb == "push":
                self._pushed(job, named, event.time_s)
            elif event.verb in PUTS_BACK:
                job.excuses += 1

    def _pushed(self, job: _Job, named: Json, time_s: float) -> None:
        if job.ended_s is not None:  # another job begins; the former one was ended before
            job.pushes, job.deliveries, job.excuses = [], 0, 0
        if job.ended_s is not None or job.may_have_ended:
            job.acknowledged = False
        job.excuses += bool(job.pushes)  # a second push is a second job
        job.pushes.append((time_s, named["delay_s"]))
        job.ttr_s = min(job.ttr_s or named["ttr_s"], named["ttr_s"])
        job.ended_s = None
        job.end_unknown = job.may_have_ended = job.ended_until_s > time_s
        job.under_way += 1

    def _end(self, begun: Event, event: Event) -> None:
        if event.type == INFO:
            self._unknown(begun, event.time_s + SETTLED_S if event.jobs else FOR_EVER)
        elif event.verb == "push":
            for named in event.jobs:
                self._push_answered(named, event.time_s)
        elif event.verb == "pop":
            for named in event.jobs:
                self._deliver(named, begun.time_s, event.time_s)
        elif event.verb in ENDS:
            self._ended(event.jobs, begun.time_s, event.time_s)

    def _push_answered(self, named: Json, time_s: float) -> None:
        job = self._job(named["id"])
        if named["code"] == DONE:
            job.acknowledged, job.acknowledged_s = True, time_s
            self._acknowledged.add(named["id"])
        job.under_way -= 1
        settled_s = time_s + (SETTLED_S if named["code"] == UNAVAILABLE else 0)
        job.pushed_until_s = max(job.pushed_until_s, settled_s)

    def _unknown(self, begun: Event, until_s: float) -> None:
        """It may be done until then, or never."""
        self._verdict.unknown += 1
        for named in begun.jobs:
            job = self._job(named["id"])
            if begun.verb == "push":
                job.under_way -= 1
                job.pushed_until_s = max(job.pushed_until_s, until_s)
            elif begun.verb in ENDS:
                self._end_unknown(job, until_s)

    def _end_unknown(self, job: _Job, until_s: float) -> None:
        job.end_unknown = True
        job.ended_until_s = max(job.ended_until_s, until_s)

    def _ended(self, jobs: Sequence[Json], asked_s: float, time_s: float) -> None:
        """With a receipt, the repetition of an end that was done without an answer gets "no such job"."""
        for named in jobs:
            job = self._job(named["id"])
            done = named["code"] == DONE or (named["code"] == GONE and job.end_unknown)
            if named["code"] == UNAVAILABLE:  # of this one: its bucket was away
                self._end_unknown(job, time_s + SETTLED_S)
            # one of several pushes may be done after this end, but a push is never done twice
            is_pushed = job.under_way > 0 or job.pushed_until_s > asked_s
            can_come_back = is_pushed and len(job.pushes) > 1
            if done and can_come_back:
                job.may_have_ended = True
            elif done and job.ended_s is None:
                job.ended_s = time_s

    def _deliver(self, named: Json, asked_s: float, heard_s: float) -> None:
        job_id = named["id"]
        job = self._job(job_id)
        self._delivered.add(job_id)
        shown_s = heard_s + self._offset(asked_s, heard_s)[1]  # the store's clock at the latest
        due_s = max(self._earliest_due_s(job, heard_s), named.get("due", 0.0))
        if shown_s < due_s - CLOCK_STEP_S:
            self._verdict.early.append(job_id)
        if job.ended_s is not None and job.ended_s < asked_s:
            self._verdict.after_end.append(job_id)
        if job.deliveries:
            self._repeat(job_id, job, shown_s)
        else:
            self._verdict.lateness_ms.append((shown_s - due_s) * 1000)
        job.deliveries += 1
        job.delivered_s = heard_s
        reserved_s = self._reserved_from_s(asked_s)
        job.held_from_s = reserved_s + self._offset(reserved_s, heard_s)[0]

    def _reserved_from_s(self, asked_s: float) -> float:
        """The earliest time at which a job can have been reserved for a poll of that time."""
        since_s, until_s = self._frozen_s
        return since_s if since_s <= asked_s <= until_s + SETTLE_S else asked_s

    def _earliest_due_s(self, job: _Job, heard_s: float) -> float:
        """Of all its pushes, on the store's clock; each of them may have been done at any time until now."""
        dues_s = [
            asked_s + self._offset(asked_s, heard_s)[0] + delay_s for asked_s, delay_s in job.pushes
        ]
        return min(dues_s, default=0.0)

    def _repeat(self, job_id: str, job: _Job, shown_s: float) -> None:
        self._verdict.duplicates += 1
        if shown_s + CLOCK_STEP_S >= job.held_from_s + job.ttr_s:
            return
        if job.excuses:
            job.excuses -= 1
        else:
            self._verdict.unexplained.append(job_id)

    def _offset(self, since_s: float, until_s: float) -> tuple[float, float]:
        """The least and the largest offset of the store's clock in that time."""
        offsets = [
            offset
            for (start_s, offset), (end_s, _) in zip(
                self._clocks, [*self._clocks[1:], (float("inf"), 0.0)], strict=True
            )
            if start_s <= until_s and end_s + SETTLE_S >= since_s
        ]
        return min(offsets), max(offsets)


def _forget(job: _Job, since_s: float) -> None:
    """What was answered since then may or may not be in the store."""
    if job.acknowledged_s > since_s:
        job.acknowledged = False
    if job.delivered_s > since_s:
        job.excuses += 1
    if job.ended_s is not None and job.ended_s > since_s:
        job.ended_s, job.may_have_ended = None, True
