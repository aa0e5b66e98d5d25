"""The queue as a plain program, slow and without Redis: what the scripts must do, on one page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from delayqueue.domain.job import USUAL_PRIORITY, IfExists, Job
from delayqueue.errors import Code

if TYPE_CHECKING:
    from collections.abc import Iterable

    from delayqueue.store.types import Plan

LIVE = ("delayed", "ready", "reserved", "buried")


@dataclass
class Entry:
    """A job that has not ended."""

    job: Job
    due_ms: int
    expire_ms: int  # 0 = never
    state: str = "delayed"
    attempt: int = 0
    priority: int = USUAL_PRIORITY
    failures: int = 0  # since it was pushed or kicked: the schedule's position
    failed: list[int] = field(default_factory=list)  # the attempts that failed
    deadline_ms: int = 0
    receipt: str = ""
    was_buried: bool = False  # until it was reserved


@dataclass
class Model:
    """The contents of a bucket."""

    now_ms: int
    jobs: dict[str, Entry] = field(default_factory=dict)
    kept: dict[str, tuple[str, str, int]] = field(default_factory=dict)  # id -> state, topic, until
    ready: list[str] = field(default_factory=list)  # ids of all topics, in their order
    disturbed: set[str] = field(
        default_factory=set
    )  # topics in whose ready lists the order is free
    paused: dict[str, int] = field(default_factory=dict)  # topic -> until, 0 = until resumed
    is_one_bucket: bool = True  # several topics have no common order

    def push(self, job: Job) -> int:
        exists = job.id in self.jobs or job.id in self.kept
        if exists and job.if_exists is IfExists.FAIL:
            return Code.JOB_EXISTS
        if exists and job.if_exists is IfExists.KEEP:
            return Code.OK
        self._forget(job.id)
        self.kept.pop(job.id, None)
        due_ms = self.now_ms + job.delay_ms
        expire_ms = due_ms + job.expire_ms if job.expire_ms else 0
        self.jobs[job.id] = Entry(job, due_ms, expire_ms, priority=job.priority)
        if due_ms <= self.now_ms:
            self._make_ready(job.id)
        return Code.OK

    def pop(self, topics: tuple[str, ...], wanted: int, got: list[str]) -> list[str]:
        """What a pop must return; if the order is free, that of `got`."""
        found: list[str] = []
        for topic in topics:
            if topic not in self.paused:
                mine = [job_id for job_id in self.ready if self.jobs[job_id].job.topic == topic]
                found += self._in_order(topic, mine, got)[: wanted - len(found)]
        for job_id in found:
            entry = self.jobs[job_id]
            self.ready.remove(job_id)
            entry.state, entry.was_buried = "reserved", False
            entry.attempt += 1
            entry.deadline_ms = self.now_ms + entry.job.ttr_ms
        return found

    def _in_order(self, topic: str, ready: list[str], got: list[str]) -> list[str]:
        """By priority. Jobs of the default priority stay as they became ready, others go by their due times.

        A job of the default priority that left its ready list other than by a pop may find its old place there.
        """

        def place(job_id: str) -> tuple[int, ...]:
            entry = self.jobs[job_id]
            as_got = got.index(job_id) if job_id in got else len(got)
            if not self.is_one_bucket:
                return (as_got,)
            if entry.priority != USUAL_PRIORITY:
                return entry.priority, entry.due_ms, len(job_id), ord(job_id)
            return USUAL_PRIORITY, as_got if topic in self.disturbed else len(got)

        return sorted(ready, key=place)

    def end(self, job_id: str, receipt: str, state: str) -> int:
        code = self._refusal(job_id, receipt)
        if not receipt and job_id not in self.jobs:
            return Code.OK
        if code == Code.OK:
            self._end(job_id, state)
        return code

    def discard(self, job_id: str) -> int:
        if job_id not in self.jobs:
            return Code.NO_SUCH_JOB
        if self.jobs[job_id].state == "reserved":
            return Code.WRONG_STATE
        self._end(job_id, "cancelled")
        return Code.OK

    def reserve(self, job_id: str) -> int:
        if job_id not in self.jobs:
            return Code.NO_SUCH_JOB
        if self.jobs[job_id].state == "reserved":
            return Code.WRONG_STATE
        entry = self.jobs[job_id]
        if entry.state == "buried" and entry.expire_ms:
            self._expire_along(entry, self.now_ms)
            entry.due_ms = self.now_ms
        entry.was_buried = entry.state == "buried"
        self._leave(job_id, "reserved")
        entry.attempt += 1
        entry.deadline_ms = self.now_ms + entry.job.ttr_ms
        return Code.OK

    def requeue(self, job_id: str, receipt: str) -> None:
        """The attempt is uncounted; the job goes back to where it was reserved."""
        if self._refusal(job_id, receipt, reserved=True) != Code.OK:
            return
        entry = self.jobs[job_id]
        entry.attempt -= 1
        if entry.was_buried:
            self._leave(job_id, "buried")
        elif entry.due_ms > self.now_ms:
            self._leave(job_id, "delayed")
        else:
            self._make_ready(job_id)
            self.disturbed.add(entry.job.topic)

    def release(self, job_id: str, receipt: str, delay_ms: int | None, priority: int | None) -> int:
        code = self._refusal(job_id, receipt, reserved=True)
        if code == Code.OK:
            self._rank(job_id, priority)
            self._fail(job_id, delay_ms)
        return code

    def touch(self, job_id: str, receipt: str, ttr_ms: int | None) -> int:
        code = self._refusal(job_id, receipt, reserved=True)
        if code == Code.OK:
            entry = self.jobs[job_id]
            entry.deadline_ms = self.now_ms + (ttr_ms or entry.job.ttr_ms)
        return code

    def bury(self, job_id: str, receipt: str, priority: int | None) -> int:
        code = self._refusal(job_id, receipt)
        if code == Code.OK and self.jobs[job_id].state == "buried":
            return Code.WRONG_STATE
        if code == Code.OK:
            if self.jobs[job_id].state == "reserved":
                self.jobs[job_id].failed.append(self.jobs[job_id].attempt)
            self._leave(job_id, "buried")
            self._rank(job_id, priority)
        return code

    def kick(self, job_id: str) -> int:
        if job_id not in self.jobs:
            return Code.NO_SUCH_JOB
        entry = self.jobs[job_id]
        if entry.state not in {"buried", "delayed"}:
            return Code.WRONG_STATE
        self._expire_along(entry, self.now_ms)
        entry.due_ms, entry.failures = self.now_ms, 0
        self._make_ready(job_id)
        return Code.OK

    def reschedule(self, job_id: str, plan: Plan) -> int:
        if job_id not in self.jobs:
            return Code.NO_SUCH_JOB
        entry = self.jobs[job_id]
        if entry.state == "reserved":
            return Code.WRONG_STATE
        due_ms = self._planned_ms(entry, plan)
        if due_ms is not None:
            self._expire_along(entry, due_ms)
            self._delay(job_id, due_ms - self.now_ms)
        elif entry.state == "ready" and plan.priority not in {None, entry.priority}:
            self._make_ready(job_id)
        self._rank(job_id, plan.priority)
        return Code.OK

    def _planned_ms(self, entry: Entry, plan: Plan) -> int | None:
        """When the job is due then; None if it stays where it is."""
        if plan.delay_ms is not None:
            return self.now_ms + plan.delay_ms
        if plan.by_ms is None:
            return None
        due_ms = max(self.now_ms, entry.due_ms + plan.by_ms)
        return None if entry.state == "ready" and due_ms <= self.now_ms else due_ms

    def cancel(self, tag: str) -> int:
        tagged = [job_id for job_id, entry in self.jobs.items() if tag in entry.job.tags]
        for job_id in tagged:
            self._end(job_id, "cancelled")
        return len(tagged)

    def take(self, topic: str, first_ms: int, last_ms: int, most: int) -> list[str]:
        def in_range(job_id: str) -> bool:
            entry = self.jobs[job_id]
            return entry.job.topic == topic and first_ms <= entry.due_ms <= last_ms

        found = self._by_due_time(filter(in_range, [*self.ready, *self._delayed()]))[:most]
        for job_id in found:
            self._end(job_id, "finished")
        return found

    def purge(self, topic: str, state: str) -> int:
        gone = [
            i for i, entry in self.jobs.items() if (entry.job.topic, entry.state) == (topic, state)
        ]
        for job_id in gone:
            self._forget(job_id)
        if state != "ended":
            return len(gone)
        kept = [i for i, (_, of, _) in self.kept.items() if of == topic]
        for job_id in kept:
            del self.kept[job_id]
        return len(kept)

    def interesting(self) -> list[str]:
        """Ids, more often of jobs with a history."""
        failed = [i for i, entry in self.jobs.items() if entry.failures and entry.job.retry_ms]
        expiring = [i for i, entry in self.jobs.items() if entry.expire_ms]
        return [*2 * list(self.jobs), *3 * failed, *3 * expiring]

    def step(self, ms: int) -> None:
        """Time passes, and the timer ticks until nothing is due."""
        self.now_ms += ms
        overdue = [
            job_id
            for job_id, entry in self.jobs.items()
            if entry.state == "reserved" and entry.deadline_ms <= self.now_ms
        ]
        for job_id in sorted(overdue, key=lambda i: (self.jobs[i].deadline_ms, i)):
            self._fail(job_id, None)
        for job_id, entry in list(self.jobs.items()):
            waits = entry.state in {"delayed", "ready"}
            if waits and entry.expire_ms and entry.expire_ms <= self.now_ms:
                self._end(job_id, "expired")
        for job_id in self._delayed():
            if self.jobs[job_id].due_ms <= self.now_ms:
                self._make_ready(job_id)
        self.kept = {i: kept for i, kept in self.kept.items() if kept[2] > self.now_ms}
        self.paused = {
            topic: until
            for topic, until in self.paused.items()
            if until == 0 or until > self.now_ms
        }

    def counts(self, topic: str) -> dict[str, int]:
        states = [entry.state for entry in self.jobs.values() if entry.job.topic == topic]
        return {state: states.count(state) for state in LIVE}

    def _expire_along(self, entry: Entry, due_ms: int) -> None:
        shift_ms = due_ms - entry.due_ms
        if entry.expire_ms and (shift_ms > 0 or not entry.attempt):
            entry.expire_ms += shift_ms

    def _refusal(self, job_id: str, receipt: str, *, reserved: bool = False) -> int:
        entry = self.jobs.get(job_id)
        if entry is None:
            return Code.NO_SUCH_JOB
        if receipt and not (entry.state == "reserved" and entry.receipt == receipt):
            return Code.STALE_RECEIPT
        if reserved and entry.state != "reserved":
            return Code.WRONG_STATE
        return Code.OK

    def _fail(self, job_id: str, delay_ms: int | None) -> None:
        entry = self.jobs[job_id]
        entry.failed.append(entry.attempt)
        entry.failures += 1
        if entry.expire_ms and entry.expire_ms <= self.now_ms:
            self._end(job_id, "expired")
            return
        schedule = entry.job.retry_ms
        earliest_ms = self.now_ms if delay_ms is not None else max(self.now_ms, entry.due_ms)
        if delay_ms is None and schedule is not None:
            if entry.failures > len(schedule):
                self._leave(job_id, "buried")
                return
            delay_ms = schedule[entry.failures - 1]
        delay_ms = max(delay_ms or 0, earliest_ms - self.now_ms)
        if delay_ms:
            self._delay(job_id, delay_ms)
        else:
            if entry.priority != USUAL_PRIORITY or entry.due_ms > self.now_ms:
                entry.due_ms = self.now_ms
            self._make_ready(job_id)

    def _delayed(self) -> list[str]:
        """By due time, then by id, as in a sorted set."""
        delayed = [job_id for job_id, entry in self.jobs.items() if entry.state == "delayed"]
        return self._by_due_time(delayed)

    def _by_due_time(self, ids: Iterable[str]) -> list[str]:
        return sorted(ids, key=lambda i: (self.jobs[i].due_ms, i))

    def _delay(self, job_id: str, delay_ms: int) -> None:
        self._leave(job_id, "delayed").due_ms = self.now_ms + delay_ms

    def _make_ready(self, job_id: str) -> None:
        self._leave(job_id, "ready")
        self.ready.append(job_id)

    def _rank(self, job_id: str, priority: int | None) -> None:
        if priority is not None:
            self.jobs[job_id].priority = priority

    def _leave(self, job_id: str, state: str) -> Entry:
        entry = self.jobs[job_id]
        if entry.state == "ready":
            self.ready.remove(job_id)
            if entry.priority == USUAL_PRIORITY:
                self.disturbed.add(entry.job.topic)
        entry.state, entry.receipt = state, ""
        return entry

    def _end(self, job_id: str, state: str) -> None:
        job = self.jobs[job_id].job
        self._forget(job_id)
        if job.retain_ms:
            self.kept[job_id] = (state, job.topic, self.now_ms + job.retain_ms)

    def _forget(self, job_id: str) -> None:
        if job_id in self.jobs:
            self._leave(job_id, "")
            del self.jobs[job_id]
