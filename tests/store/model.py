"""The contents of a bucket as a plain program, slow and without Redis: what the scripts must do.

What a verb does to one job, `faults/attack/life.py` says; here a time is a moment, not a span. The rest is what jobs
are to each other: their order, tags, topics, and what happens to many of them.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Set
from dataclasses import dataclass, field, replace

from delayqueue.domain.job import CALLS, USUAL_PRIORITY, IfExists, Job, PolledTopic
from delayqueue.errors import Code
from delayqueue.store.types import Plan
from faults.attack.life import (
    VERBS,
    Kept,
    Live,
    Span,
    Spec,
    State,
    due_at,
    ended,
    failed,
    ranked,
    reserved,
)

SECOND_MS = 1000
LIVE = ("delayed", "ready", "reserved", "buried")


@dataclass
class Model:
    """The contents of a bucket."""

    now_ms: int
    jobs: dict[str, Live] = field(default_factory=dict)
    kept: dict[str, Kept] = field(default_factory=dict)
    ready: list[str] = field(default_factory=list)  # ids of all topics, in their order
    disturbed: set[str] = field(
        default_factory=set
    )  # topics in whose ready lists the order is free
    paused: dict[str, int] = field(default_factory=dict)  # topic -> until, 0 = until resumed
    is_one_bucket: bool = True  # several topics have no common order
    failed: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    were_buried: set[str] = field(default_factory=set)  # until they were reserved
    group_limits: dict[str, int] = field(default_factory=dict)  # topic -> of one group in hand
    strict: set[str] = field(default_factory=set)  # topics with group_order
    first: dict[tuple[str, str], str] = field(default_factory=dict)  # which waits for its retry
    created: dict[str, int] = field(default_factory=dict)  # ms of a job's push
    pushed: dict[tuple[str, str], int] = field(default_factory=dict)  # of a group's last one
    most_jobs: dict[str, int] = field(default_factory=dict)  # topic -> max_jobs
    dropping: set[str] = field(default_factory=set)  # topics in which the oldest job gives way

    @property
    def now(self) -> Span:
        return self.now_ms, self.now_ms

    def push(self, job: Job, dropped: Set[str] = frozenset()) -> int:
        """`dropped`: the jobs that were seen to give way to it."""
        has_room = self._make_room(job, dropped) if self._needs_room(job) else not dropped
        if not has_room:
            return Code.TOPIC_FULL
        spec = Spec(
            job.topic,
            job.body,
            job.ttr_ms,
            job.tags,
            job.retry_ms,
            job.retain_ms,
            job.priority,
            has_call=job.call is not None,
            group=job.texts.get("group", ""),
        )
        before = self.jobs.get(job.id)
        is_known = job.id in self.jobs or job.id in self.kept
        code = self._do(
            "push",
            job.id,
            spec=spec,
            delay_ms=job.delay_ms,
            due=None,
            expire_ms=job.expire_ms,
            if_exists=job.if_exists,
        )
        if self.jobs.get(job.id, None) and self.jobs[job.id].spec is spec:
            self.failed[job.id].clear()
            self._let_pass(job.id, before)
            self.created[job.id] = self._created_ms(spec, self.created[job.id] if is_known else 0)
            self._make_ready_if_due(job.id)
        return code

    def _needs_room(self, job: Job) -> bool:
        """Whether there is a job more in its topic, if it is taken."""
        before = self.jobs.get(job.id)
        is_known = before is not None or job.id in self.kept
        if is_known and job.if_exists != IfExists.REPLACE:
            return False
        return before is None or before.spec.topic != job.topic

    def _make_room(self, job: Job, dropped: Set[str]) -> bool:
        most = self.most_jobs.get(job.topic, sys.maxsize)
        excess = sum(self.counts(job.topic).values()) + 1 - most
        left = {*dropped}
        for _ in range(excess if job.topic in self.dropping else 0):
            oldest = self._oldest(job.topic, job.texts.get("group", ""))
            if not oldest:
                break
            assert left & oldest, (dropped, oldest)
            gone = min(left & oldest)
            left.remove(gone)
            self._end(gone, "dropped")
        assert not left, left
        return excess <= 0 or bool(dropped)

    def _oldest(self, topic: str, group: str) -> set[str]:
        """Which job gives way to one of the group; those of which one does, where it is free which."""
        of = defaultdict[str, list[str]](list)
        for job_id in self.ready:
            spec = self.jobs[job_id].spec
            if spec.topic == topic:
                of[spec.group].append(job_id)
        if not of:
            return {*[i for i in self._delayed() if self.jobs[i].spec.topic == topic][:1]}
        most = max(map(len, of.values()))
        first = group if len(of[group]) == most else "" if len(of[""]) == most else None
        ones = [first] if first is not None else [each for each in of if len(of[each]) == most]
        return {job_id for each in ones for job_id in self._oldest_of(topic, each, of[each])}

    def _oldest_of(self, topic: str, group: str, ids: list[str]) -> set[str]:
        """Which of a group's ready jobs, "" = those without one, gives way; those with a call come last."""
        mine = [i for i in ids if not self.jobs[i].spec.has_call] or ids
        if group or self.jobs[mine[0]].spec.has_call:
            return self._first_of_last(mine)
        ranked = [i for i in mine if not self.jobs[i].spec.is_listed]
        listed = [i for i in mine if self.jobs[i].spec.is_listed]
        last = max((self.jobs[i].spec.priority for i in ranked), default=USUAL_PRIORITY)
        if last > USUAL_PRIORITY or not listed:
            return self._first_of_last(ranked)
        return {*listed} if topic in self.disturbed else {listed[0]}

    def _first_of_last(self, ids: list[str]) -> set[str]:
        """Of the least urgent jobs the one that has waited longest."""

        def place(job_id: str) -> tuple[int, ...]:
            job = self.jobs[job_id]
            created = self.created[job_id] if job.spec.group else 0
            return -job.spec.priority, job.due[0], created, len(job_id), ord(job_id)

        return {min(ids, key=place)} if ids else set()

    def pop(self, topics: tuple[PolledTopic, ...], wanted: int, got: list[str]) -> list[str]:
        """What a pop must return; if the order is free, that of `got`."""
        found: list[str] = []
        for topic in topics:
            if topic not in self.paused:
                mine = [job_id for job_id in self.ready if self._is_asked(topic, job_id)]
                allowed = self._allowed(mine)
                mine = [job_id for job_id in mine if job_id in allowed]
                found += self._in_order(topic, mine, got)[: wanted - len(found)]
        disturbed = {*self.disturbed}
        for job_id in found:
            self._do("pop", job_id, receipt="")
            self.were_buried.discard(job_id)
        self.disturbed = disturbed  # whoever takes the first ones leaves the others in their order
        return found

    def _is_asked(self, topic: PolledTopic, job_id: str) -> bool:
        spec = self.jobs[job_id].spec
        if topic is CALLS:
            return spec.has_call and spec.topic not in self.paused
        return spec.topic == topic and not spec.has_call

    def _created_ms(self, spec: Spec, former_ms: int) -> int:
        """No two pushes of an id have the same time, and no two of a group whose order is strict."""
        created = former_ms + 1 if 0 <= former_ms - self.now_ms < SECOND_MS else self.now_ms
        if spec.group and spec.topic in self.strict:
            created = max(created, self.pushed.get((spec.topic, spec.group), 0) + 1)
            self.pushed[spec.topic, spec.group] = created
        return created

    def _place_in_group(self, job_id: str) -> tuple[int, ...]:
        job = self.jobs[job_id]
        return job.spec.priority, job.due[0], self.created[job_id], len(job_id), ord(job_id)

    def _allowed(self, ready: list[str]) -> set[str]:
        """Those of a lane that the limits of their groups let go."""
        firsts = {self._group_of(i): i for i in sorted(self.ready, key=self._place_in_group)[::-1]}
        members = defaultdict[tuple[str, str], list[str]](list)
        allowed = set[str]()
        for job_id in sorted(ready, key=self._place_in_group):
            spec = self.jobs[job_id].spec
            if spec.group:
                members[spec.topic, spec.group].append(job_id)
            else:
                allowed.add(job_id)
        for (topic, group), mine in members.items():
            in_hand = sum(
                job.state == "reserved" and (job.spec.topic, job.spec.group) == (topic, group)
                for job in self.jobs.values()
            )
            first = self.first.get((topic, group), firsts[topic, group])
            most = 1 if topic in self.strict else self.group_limits.get(topic, len(mine) + in_hand)
            may_go = [job_id for job_id in mine if topic not in self.strict or first == job_id]
            allowed.update(may_go[: max(0, most - in_hand)])
        return allowed

    def _in_order(self, topic: PolledTopic, ready: list[str], got: list[str]) -> list[str]:
        """By priority. Jobs of the default priority stay as they became ready, others go by their due times.

        A job of the default priority that left its ready list other than by a pop may find its old place there.
        Topics take turns in giving jobs with a call, each in its order.
        """

        def place(job_id: str) -> tuple[int, ...]:
            job = self.jobs[job_id]
            if job.spec.group:
                return self._place_in_group(job_id)
            as_got = got.index(job_id) if job_id in got else len(got)
            if not self.is_one_bucket:
                return (as_got,)
            if job.spec.has_call:
                return (as_got,)
            if job.spec.priority != USUAL_PRIORITY:
                return job.spec.priority, job.due[0], len(job_id), ord(job_id)
            return USUAL_PRIORITY, as_got if topic in self.disturbed else len(got)

        left = defaultdict[tuple[str, str], list[str]](list)  # groups take turns as they did
        for job_id in sorted(ready, key=lambda i: (bool(self.jobs[i].spec.group), place(i))):
            left[self._group_of(job_id)].append(job_id)
        turns = [self._group_of(job_id) for job_id in got if job_id in ready]
        order = [left[group].pop(0) for group in turns]
        return order + [job_id for each in left.values() for job_id in each]

    def _group_of(self, job_id: str) -> tuple[str, str]:
        spec = self.jobs[job_id].spec
        return (spec.topic, spec.group) if spec.group else ("", "")

    def hold(self, job_id: str, nonce: str) -> None:
        """A job that was reserved has this nonce."""
        self.jobs[job_id] = replace(self.jobs[job_id], holder=nonce)

    def end(self, job_id: str, nonce: str, state: str) -> int:
        return self._do("finish", job_id, receipt=nonce, how=state)

    def discard(self, job_id: str) -> int:
        code = self._not_reserved(job_id)
        if code == Code.OK:
            self._end(job_id, "cancelled")
        return code

    def reserve(self, job_id: str) -> int:
        code = self._not_reserved(job_id)
        if job_id in self.jobs and self.jobs[job_id].spec.has_call:
            return Code.NO_SUCH_JOB
        if code == Code.OK:
            job = self.jobs[job_id]
            if job.state == "buried":
                self.were_buried.add(job_id)
                job = due_at(job, self.now) if job.expire else job
            else:
                self.were_buried.discard(job_id)
            deadline_ms = self.now_ms + job.spec.ttr_ms
            self._becomes(job_id, reserved(job, "", (deadline_ms, deadline_ms)))
        return code

    def requeue(self, job_id: str, nonce: str, *, was_told: bool) -> None:
        """The attempt is uncounted; the job goes back to where it was reserved."""
        job = self.jobs.get(job_id)
        if job is None or job.state != "reserved" or job.holder != nonce:
            return
        if was_told and job_id not in self.were_buried:
            self._hold_up(job_id, job)
        job = replace(job, attempt=job.attempt - 1, deadline=None, holder="")
        if job_id in self.were_buried:
            self._becomes(job_id, replace(job, state="buried"))
        elif job.due[0] > self.now_ms:
            self._becomes(job_id, replace(job, state="delayed"))
        else:
            self._becomes(job_id, replace(job, state="ready"))
            self.disturbed.add(job.spec.topic)

    def release(self, job_id: str, nonce: str, delay_ms: int | None, priority: int | None) -> int:
        return self._do(
            "release",
            job_id,
            receipt=nonce,
            delay_ms=delay_ms,
            fallback_ms=None,
            priority=priority,
        )

    def touch(self, job_id: str, nonce: str, ttr_ms: int | None) -> int:
        return self._do("touch", job_id, receipt=nonce, ttr_ms=ttr_ms)

    def bury(self, job_id: str, nonce: str, priority: int | None) -> int:
        return self._do("bury", job_id, receipt=nonce, priority=priority)

    def kick(self, job_id: str) -> int:
        return self._do("kick", job_id)

    def reschedule(self, job_id: str, plan: Plan) -> int:
        code = self._not_reserved(job_id)
        if code == Code.OK:
            job = self.jobs[job_id]
            due_ms = self._planned_ms(job, plan)
            if due_ms is not None:
                self._do("reschedule", job_id, due=(due_ms, due_ms))
                job = self.jobs[job_id]
            if due_ms is not None or plan.priority not in {None, job.spec.priority}:
                self._becomes(job_id, ranked(job, plan.priority))
        return code

    def _planned_ms(self, job: Live, plan: Plan) -> int | None:
        """When the job is due then; None if it stays where it is."""
        if plan.delay_ms is not None:
            return self.now_ms + plan.delay_ms
        if plan.by_ms is None:
            return None
        due_ms = max(self.now_ms, job.due[0] + plan.by_ms)
        return None if job.state == "ready" and due_ms <= self.now_ms else due_ms

    def cancel(self, tag: str) -> int:
        tagged = [job_id for job_id, job in self.jobs.items() if tag in job.spec.tags]
        for job_id in tagged:
            self._end(job_id, "cancelled")
        return len(tagged)

    def take(self, topic: str, first_ms: int, last_ms: int, most: int) -> list[str]:
        def in_range(job_id: str) -> bool:
            job = self.jobs[job_id]
            return job.spec.topic == topic and first_ms <= job.due[0] <= last_ms

        found = self._by_due_time(filter(in_range, [*self.ready, *self._delayed()]))[:most]
        for job_id in found:
            self._end(job_id, "finished")
        return found

    def purge(self, topic: str, state: str) -> int:
        gone = [i for i, job in self.jobs.items() if (job.spec.topic, job.state) == (topic, state)]
        if state == "ended":
            gone = [i for i, job in self.kept.items() if job.spec.topic == topic]
        for job_id in gone:
            self._becomes(job_id, None)
        return len(gone)

    def interesting(self) -> list[str]:
        """Ids, more often of jobs with a history."""
        retried = [i for i, job in self.jobs.items() if job.step and job.spec.retry_ms]
        expiring = [i for i, job in self.jobs.items() if job.expire]
        return [*2 * list(self.jobs), *3 * retried, *3 * expiring]

    def step(self, ms: int) -> None:
        """Time passes, and the timer ticks until nothing is due."""
        self.now_ms += ms
        overdue = [
            (job.deadline, job_id)
            for job_id, job in self.jobs.items()
            if job.deadline and job.deadline[0] <= self.now_ms
        ]
        for _, job_id in sorted(overdue):
            [after] = failed(self.jobs[job_id], self.now)
            self._becomes(job_id, after)
        for job_id, job in list(self.jobs.items()):
            waits = job.state in {"delayed", "ready"}
            if waits and job.expire and job.expire[0] <= self.now_ms:
                self._end(job_id, "expired")
        for job_id in self._delayed():
            self._make_ready_if_due(job_id)
        self.kept = {i: kept for i, kept in self.kept.items() if kept.until[0] > self.now_ms}
        self.paused = {
            topic: until
            for topic, until in self.paused.items()
            if until == 0 or until > self.now_ms
        }

    def counts(self, topic: str) -> dict[str, int]:
        states = [job.state for job in self.jobs.values() if job.spec.topic == topic]
        return {state: states.count(state) for state in LIVE}

    def _not_reserved(self, job_id: str) -> int:
        if job_id not in self.jobs:
            return Code.NO_SUCH_JOB
        return Code.WRONG_STATE if self.jobs[job_id].state == "reserved" else Code.OK

    def _do(self, verb: str, job_id: str, **asked: object) -> int:
        """Do it as the rules say; returns the code."""
        state = self.jobs.get(job_id) or self.kept.get(job_id)
        [(told, after)] = VERBS[verb](state, asked, self.now)
        if after is not state:
            self._becomes(job_id, after)
        return told.code

    def _becomes(self, job_id: str, after: State) -> None:
        before = self.jobs.pop(job_id, None)
        self.kept.pop(job_id, None)
        if before is not None and before.state == "ready":
            self.ready.remove(job_id)
            if before.spec.is_listed:
                self.disturbed.add(before.spec.topic)
        if isinstance(after, Kept):
            self.kept[job_id] = after
        elif after is not None:
            self.jobs[job_id] = after
            if after.state == "ready":
                self.ready.append(job_id)
            if (before is not None and before.step < after.step) or _is_given_up(before, after):
                self.failed[job_id].append(after.attempt)
        self._note_first(job_id, before, after)

    def _note_first(self, job_id: str, before: Live | None, after: State) -> None:
        """In a strict order a job that has failed comes before the others of its group, until it ends or is buried."""
        if before is None or not before.spec.group:
            return
        if not isinstance(after, Live) or after.state == "buried":
            self._let_pass(job_id, before)
        elif before.step < after.step:
            self._hold_up(job_id, before)

    def _hold_up(self, job_id: str, job: Live) -> None:
        if job.spec.group and job.spec.topic in self.strict:
            self.first.setdefault((job.spec.topic, job.spec.group), job_id)

    def _let_pass(self, job_id: str, job: Live | None) -> None:
        if job is not None and self.first.get((job.spec.topic, job.spec.group)) == job_id:
            del self.first[job.spec.topic, job.spec.group]

    def _make_ready_if_due(self, job_id: str) -> None:
        job = self.jobs[job_id]
        if job.due[0] <= self.now_ms:
            self._becomes(job_id, replace(job, state="ready"))

    def _end(self, job_id: str, how: str) -> None:
        self._becomes(job_id, ended(self.jobs[job_id], how, self.now))

    def _delayed(self) -> list[str]:
        """By due time, then by id, as in a sorted set."""
        return self._by_due_time(i for i, job in self.jobs.items() if job.state == "delayed")

    def _by_due_time(self, ids: Iterable[str]) -> list[str]:
        return sorted(ids, key=lambda i: (self.jobs[i].due, i))


def _is_given_up(before: Live | None, after: Live) -> bool:
    """Whether somebody has buried a job that was reserved, which counts as a failure."""
    return (
        before is not None
        and (before.state, after.state) == ("reserved", "buried")
        and before.step == after.step
        and before.attempt == after.attempt
    )
