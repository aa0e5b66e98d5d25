"""What each verb may do to one job, as docs/api.md says it: from one state to the next, with the answer.

Clients do not know at what moment a script ran, only when they sent the request and got the answer. So a time is
a span, its earliest and latest ms, until an answer or the store tells it exactly; and a step yields each state that
is possible after it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from delayqueue.domain.job import USUAL_PRIORITY
from delayqueue.errors import Code

NOBODY: Final = "?"  # holds a job that was reserved for a poll that is over
BURIED_MS: Final = -1
FOR_EVER_MS: Final = 1 << 60
STALL_MS: Final = 2000  # if two holds are further apart than a TTR and this, the machine is busy

Span = tuple[int, int]
UNKNOWN: Final[Span] = (0, FOR_EVER_MS)


def later(span: Span, ms: int) -> Span:
    """The span this many ms later."""
    return span[0] + ms, span[1] + ms


@dataclass(frozen=True)
class Spec:
    """A job as it was pushed; `body` tells one push from another."""

    topic: str
    body: str | bytes
    ttr_ms: int
    tags: tuple[str, ...] = ()
    retry_ms: tuple[int, ...] | None = None
    retain_ms: int = 0
    priority: int = USUAL_PRIORITY
    has_call: bool = False
    group: str = ""

    @property
    def is_listed(self) -> bool:
        """Whether it queues in the order in which jobs became ready; else by priority and due time."""
        return self.priority == USUAL_PRIORITY and not self.has_call and not self.group


@dataclass(frozen=True)
class Live:
    """A job that has not ended."""

    spec: Spec
    state: str
    due: Span
    expire: Span | None = None
    attempt: int = 0
    step: int = 0  # failures since it was pushed, kicked or rescheduled as a dead letter
    deadline: Span | None = None
    holder: str = ""  # the receipt of its holder


@dataclass(frozen=True)
class Kept:
    """A job that ended and is remembered."""

    spec: Spec
    state: str
    until: Span


State = Live | Kept | None  # None = the id is unknown


@dataclass(frozen=True)
class Told:
    """What an answer says about one job. A time is what the answer says, or may say."""

    code: int = Code.OK
    time: Span | None = None
    seen: tuple[object, ...] = ()

    def agrees(self, said: "Told") -> bool:
        """Whether this can be the answer."""
        if (self.code, self.seen) != (said.code, said.seen):
            return False
        if self.time is None or said.time is None:
            return self.time is said.time
        return self.time[0] <= said.time[1] and said.time[0] <= self.time[1]


Step = tuple[Told, State]
DONE: Final = Told()
UNKNOWN_ID: Final = Told(Code.NO_SUCH_JOB)
WRONG: Final = Told(Code.WRONG_STATE)
STALE: Final = Told(Code.STALE_RECEIPT)


def ended(job: Live, how: str, at: Span) -> State:
    """What remains of a job that ended."""
    retain_ms = job.spec.retain_ms
    return Kept(job.spec, how, later(at, retain_ms)) if retain_ms else None


def push(state: State, asked: Mapping[str, Any], at: Span) -> Iterator[Step]:
    """Add or replace it. Also a job that is due now may be `delayed` for a moment."""
    if state is not None and asked["if_exists"] != "replace":
        yield (DONE if asked["if_exists"] == "keep" else Told(Code.JOB_EXISTS)), state
        return
    due = asked["due"] or later(at, asked["delay_ms"])
    expire = later(due, asked["expire_ms"]) if asked["expire_ms"] else None
    yield DONE, Live(asked["spec"], "delayed", due, expire)


def pop(state: State, asked: Mapping[str, Any], at: Span) -> Iterator[Step]:
    """Hand it out; only jobs that came are known to have been asked for."""
    if not isinstance(state, Live) or state.state != "ready":
        return
    if state.expire and state.expire[1] <= at[0]:
        return
    told = Told(time=state.due, seen=(state.spec.topic, state.spec.body, state.attempt + 1))
    yield told, reserved(state, asked["receipt"], later(at, state.spec.ttr_ms))


def lost_pop(state: State, asked: Mapping[str, Any], at: Span) -> Iterator[Step]:
    """A client vanished before it had its answer: the job was put back, or the client holds it unknowingly."""
    yield DONE, state
    if isinstance(state, Live) and state.state == "ready":
        yield DONE, reserved(state, NOBODY, later(at, state.spec.ttr_ms))


def end(state: State, asked: Mapping[str, Any], at: Span) -> Iterator[Step]:
    """/finish and /delete: `how` says which."""
    if not isinstance(state, Live):
        yield (UNKNOWN_ID if asked["receipt"] else DONE), state
    elif refusal := _refusal(state, asked["receipt"]):
        yield refusal, state
    else:
        yield DONE, ended(state, asked["how"], at)


def release(state: State, asked: Mapping[str, Any], at: Span) -> Iterator[Step]:
    """Give it back."""
    refusal = _refusal(state, asked["receipt"], reserved=True)
    if refusal or not isinstance(state, Live):
        yield refusal or UNKNOWN_ID, state
        return
    state = ranked(state, asked.get("priority"))
    for after in failed(state, at, asked["delay_ms"], asked["fallback_ms"]):
        if not isinstance(after, Live) or after.state == "buried":
            yield DONE, after
        else:
            yield Told(time=after.due if after.state == "delayed" else at), after


def touch(state: State, asked: Mapping[str, Any], at: Span) -> Iterator[Step]:
    """Work on it for longer."""
    refusal = _refusal(state, asked["receipt"], reserved=True)
    if refusal or not isinstance(state, Live):
        yield refusal or UNKNOWN_ID, state
        return
    deadline = later(at, asked["ttr_ms"] or state.spec.ttr_ms)
    yield Told(time=deadline), replace(state, deadline=deadline)


def bury(state: State, asked: Mapping[str, Any], at: Span) -> Iterator[Step]:
    """Give it up."""
    refusal = _refusal(state, asked["receipt"])
    if refusal or not isinstance(state, Live):
        yield refusal or UNKNOWN_ID, state
    elif state.state == "buried":
        yield WRONG, state
    else:
        due = state.due
        if (
            state.state == "delayed" and state.attempt
        ):  # that of a retry, for which it waits no more
            due = min(due[0], at[0]), min(due[1], at[1])
        after = replace(state, state="buried", due=due, deadline=None, holder="")
        yield DONE, ranked(after, asked.get("priority"))


def kick(state: State, asked: Mapping[str, Any], at: Span) -> Iterator[Step]:
    """Make it ready now."""
    if not isinstance(state, Live):
        yield UNKNOWN_ID, state
    elif state.state not in {"buried", "delayed"}:
        yield WRONG, state
    else:
        yield DONE, replace(due_at(state, at), state="ready", step=0)


def reschedule(state: State, asked: Mapping[str, Any], at: Span) -> Iterator[Step]:
    """Give it another due time."""
    if not isinstance(state, Live):
        yield UNKNOWN_ID, state
    elif state.state == "reserved":
        yield WRONG, state
    else:
        due = asked["due"] or later(at, asked["delay_ms"])
        step = 0 if state.state == "buried" else state.step
        yield Told(time=due), replace(due_at(state, due), state="delayed", step=step)


def cancel(state: State, asked: Mapping[str, Any], at: Span) -> Iterator[Step]:
    """By tag, of one topic or of all."""
    tagged = isinstance(state, Live) and asked["tag"] in state.spec.tags
    if isinstance(state, Live) and tagged and asked["topic"] in {"", state.spec.topic}:
        yield DONE, ended(state, "cancelled", at)
    else:
        yield DONE, state


def take(state: State, asked: Mapping[str, Any], at: Span) -> Iterator[Step]:
    """Only jobs that came are known to have been taken."""
    if (
        isinstance(state, Live)
        and state.state in {"delayed", "ready"}
        and concerns("take", asked, state.spec)
    ):
        told = Told(time=state.due, seen=(state.spec.topic, state.spec.body))
        yield told, ended(state, "finished", at)


def purge(state: State, asked: Mapping[str, Any], at: Span) -> Iterator[Step]:
    """A topic's jobs of one state; `misses`: of all states, one after the other, so that it may miss a moving job."""
    where = "ended" if isinstance(state, Kept) else state.state if state else ""
    hits = state is not None and (state.spec.topic, where) == (asked["topic"], asked["state"])
    if hits:
        yield DONE, None
    if not hits or asked["misses"]:
        yield DONE, state


def kick_some(state: State, asked: Mapping[str, Any], at: Span) -> Iterator[Step]:
    """The first ones of a topic: the answer does not say which."""
    yield DONE, state
    if isinstance(state, Live) and state.spec.topic == asked["topic"]:
        yield from (step for step in kick(state, asked, at) if step[0] == DONE)


def look(state: State, asked: Mapping[str, Any], at: Span) -> Iterator[Step]:
    """/get, and /list for jobs on its page."""
    if state is None:
        yield DONE, state
    elif isinstance(state, Kept):
        yield Told(seen=(state.spec.topic, state.spec.body, state.state)), state
    else:
        seen = (state.spec.topic, state.spec.body, state.state, state.attempt)
        yield Told(time=state.due, seen=seen), state


VERBS: Final[dict[str, Callable[[State, Mapping[str, Any], Span], Iterator[Step]]]] = {
    "push": push,
    "pop": pop,
    "lost_pop": lost_pop,
    "finish": end,
    "delete": end,
    "release": release,
    "touch": touch,
    "bury": bury,
    "kick": kick,
    "kick_some": kick_some,
    "reschedule": reschedule,
    "cancel": cancel,
    "take": take,
    "purge": purge,
    "look": look,
}


def concerns(verb: str, asked: Mapping[str, Any], spec: Spec) -> bool:
    """Whether a verb on many jobs can do anything to a job that was pushed so."""
    if verb == "cancel":
        return asked["tag"] in spec.tags and asked["topic"] in {"", spec.topic}
    if verb == "lost_pop":
        return spec.topic in asked["topics"]
    return verb not in {"purge", "kick_some", "take"} or asked["topic"] == spec.topic


def failed(
    job: Live, at: Span, delay_ms: int | None = None, fallback_ms: int | None = None
) -> Iterator[State]:
    """After an attempt that failed. It waits at least until it is due, unless a delay was given."""
    least = job.due if delay_ms is None else at
    job = replace(job, step=job.step + 1, deadline=None, holder="")
    if job.expire and job.expire[0] <= at[1]:
        yield ended(job, "expired", at)
        if job.expire[1] <= at[0]:
            return
    schedule = job.spec.retry_ms
    if delay_ms is None and schedule is not None:
        delay_ms = schedule[job.step - 1] if job.step <= len(schedule) else BURIED_MS
    delay_ms = fallback_ms if delay_ms is None else delay_ms
    if delay_ms == BURIED_MS:
        yield replace(job, state="buried")
        return
    due = later(at, delay_ms or 0)
    due = max(due[0], least[0]), max(due[1], least[1])
    if due[0] > at[0]:
        yield replace(job, state="delayed", due=due)
    elif job.spec.is_listed and job.due[0] <= at[0]:
        yield replace(job, state="ready")
    else:
        yield replace(job, state="ready", due=at)  # behind its equals


def alone(state: State, now_ms: int, between: Span) -> Iterator[State]:
    """What it can have become by itself until now, one step further.

    `between` contains its time: a wider span than necessary, so that there are fewer different states.
    """
    if isinstance(state, Kept):
        if state.until[0] <= now_ms:
            yield None
    elif state is not None:
        yield from _alone(state, now_ms, between)


def _alone(job: Live, now_ms: int, between: Span) -> Iterator[State]:
    if job.holder == NOBODY:
        yield replace(job, state="ready", attempt=job.attempt - 1, deadline=None, holder="")
    deadline = job.deadline
    if deadline == UNKNOWN:
        # it is put back, unless its server stood still until the TTR was over: once, else there were states without end
        stalled = not job.step and now_ms - between[0] > job.spec.ttr_ms + STALL_MS
        deadline = later(between, job.spec.ttr_ms) if stalled else None
    if deadline and deadline[0] <= now_ms:
        yield from failed(job, (deadline[0], between[1]))
    if job.state in {"delayed", "ready"} and job.expire and job.expire[0] <= now_ms:
        yield ended(job, "expired", (job.expire[0], between[1]))
    if job.state == "delayed" and job.due[0] <= now_ms:
        yield replace(job, state="ready")
    if job.state == "ready":
        yield reserved(job, NOBODY, UNKNOWN)


def ranked(job: Live, priority: int | None) -> Live:
    """With that priority; None = its own."""
    return job if priority is None else replace(job, spec=replace(job.spec, priority=priority))


def overlap(one: Span, other: Span) -> bool:
    """Whether two spans have a moment in common."""
    return one[0] <= other[1] and other[0] <= one[1]


def reserved(job: Live, holder: str, deadline: Span) -> Live:
    """Handed out to somebody."""
    attempt = job.attempt + 1
    return replace(job, state="reserved", attempt=attempt, deadline=deadline, holder=holder)


def due_at(job: Live, due: Span) -> Live:
    """Somebody gives it a new due time; its expiry moves along, but after a delivery never to an earlier time."""
    shift = due[0] - job.due[1], due[1] - job.due[0]
    if job.attempt:
        shift = max(shift[0], 0), max(shift[1], 0)
    expire = job.expire and (job.expire[0] + shift[0], job.expire[1] + shift[1])
    return replace(job, due=due, expire=expire)


def _refusal(state: State, receipt: str, *, reserved: bool = False) -> Told | None:
    if not isinstance(state, Live):
        return UNKNOWN_ID
    if receipt and not (state.state == "reserved" and state.holder == receipt):
        return STALE
    if reserved and state.state != "reserved":
        return WRONG
    return None
