"""Knows the states that each job may be in, given the requests and answers; finds what is impossible.

For each id it keeps the possible states. An operation took effect at some moment between its request and its
answer; all orders of several are tried, as checkers of linearizability do: if no order of them explains an
answer, a promise was broken. One without an answer may have taken effect or not, until `OPEN_HOLDS` later. Whenever the
load is held, what the store really has must be among the possible states, and is what is known from then on.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from operator import attrgetter
from typing import Any, Final, NamedTuple

from faults.attack.life import (
    FOR_EVER_MS,
    NOBODY,
    VERBS,
    Kept,
    Live,
    Span,
    Spec,
    State,
    Told,
    alone,
    concerns,
    overlap,
)

OPEN_HOLDS: Final = 2  # for this many holds an operation without an answer may still take effect
# stands for all polls whose answer was lost: at most one of them got a job between two holds
LOST: Final = -1
MOST_WORLDS: Final = 3_000  # beyond that an id is not judged until the next hold
MOST_SHOWN: Final = 20

About = tuple["Mapping[str, Any]", Told | None]  # requests for one id, and their answers


class TooManyWorlds(Exception):
    """An id has too many possible states to continue."""


World = tuple[State, frozenset[int]]  # a state, and the pending operations that took effect


@dataclass
class Operation:
    """What one request asks of one job. `told` None = no client got an answer."""

    number: int
    verb: str
    asked: Mapping[str, Any]
    since_ms: int
    until_ms: int
    told: Told | None
    holds: int = 0

    def concerns_one_of(self, specs: Iterable[Spec]) -> bool:
        """Whether it can do anything to one of these; without an answer it can also apply to a later state."""
        return self.told is None or any(concerns(self.verb, self.asked, spec) for spec in specs)

    def __str__(self) -> str:
        asked = {name: value for name, value in self.asked.items() if value not in ("", None)}
        said = "no answer" if self.told is None else f"{self.until_ms % 10**6}: {self.told}"
        return f"{self.since_ms % 10**6} {self.verb} {asked} {said}"


class Event(NamedTuple):
    """An operation begins or is answered; events are in the order of their tickets."""

    ticket: int
    is_end: bool
    operation: Operation


@dataclass
class _Id:
    """What is known about one id."""

    worlds: set[World] = field(default_factory=lambda: {(None, frozenset())})
    events: list[Event] = field(default_factory=list)
    pending: dict[int, Operation] = field(default_factory=dict)
    past: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_SHOWN))

    def start(self, state: State) -> None:
        """Forget everything except the state."""
        self.worlds = {(state, frozenset())}
        self.events.clear()
        self.pending.clear()

    def specs(self) -> set[Spec]:
        """The specs of all jobs that the id can have stood for since the last hold."""
        operations = [event.operation for event in self.events] + [*self.pending.values()]
        pushed = {each.asked["spec"] for each in operations if each.verb == "push"}
        return pushed | {state.spec for state, _ in self.worlds if state}

    def possible(self) -> list[str]:
        """Some of the states, for people."""
        return sorted({str(state) for state, _ in self.worlds})[:3]

    def close(self) -> None:
        """Operations that have had no answer for long no longer take effect."""
        for operation in self.pending.values():
            operation.holds += 1
        over = {n for n, operation in self.pending.items() if operation.holds > OPEN_HOLDS}
        for number in over:
            del self.pending[number]
        self.worlds = {(state, effects - over) for state, effects in self.worlds}


class Shadow:
    """`began` and `heard` as it happens; `judge` while nothing is under way."""

    def __init__(self, ids: Iterable[str], now_ms: int) -> None:
        self._ids = {job_id: _Id() for job_id in ids}
        self._between = (now_ms, now_ms)  # the last hold and this one
        self._tickets = count(1)
        self._unheard: set[tuple[str, Live]] = set()
        self.judged = 0  # operations on one job
        self.unjudged = 0  # ids that had too many possible states, until the next hold
        self.stuck: set[tuple[str, Live]] = set()  # lasting reservations that no client knows of

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._ids

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def began(self) -> int:
        """A request goes out. Returns its ticket."""
        return next(self._tickets)

    def heard(
        self, ticket: int, verb: str, since_ms: int, now_ms: int, about: Mapping[str, About]
    ) -> None:
        """It is answered; `about` has the request and the answer for each id."""
        end = next(self._tickets)
        for job_id, (asked, told) in about.items():
            until_ms = FOR_EVER_MS if told is None else now_ms
            number = next(self._tickets)
            operation = Operation(number, verb, asked, since_ms, until_ms, told)
            events = self._ids[job_id].events
            events.append(Event(ticket, False, operation))
            if told is not None:
                events.append(Event(end, True, operation))
            self.judged += 1

    def judge(self, real: Mapping[str, State], now_ms: int) -> list[str]:
        """A sentence for each id whose history is impossible; afterwards the real state is the known one."""
        found = []
        self._between = self._between[1], now_ms
        for job_id, known in self._ids.items():
            is_now = real.get(job_id)
            try:
                wrong = self._replay(known) or self._settle(known, is_now, now_ms)
            except TooManyWorlds:
                self.unjudged += 1
                wrong = ""
                known.start(is_now)
            if wrong:
                under_way = [f"under way: {operation}" for operation in known.pending.values()]
                found.append(
                    "\n    ".join([f"{job_id!r} {wrong}; before:", *known.past, *under_way])
                )
                known.start(is_now)
            known.past.append(f"{now_ms % 10**6} is {is_now}")
            known.close()
        unheard = {
            (job_id, state)
            for job_id, state in real.items()
            if isinstance(state, Live) and state.holder == NOBODY
        }
        self.stuck |= unheard & self._unheard
        self._unheard = unheard
        return found

    def _replay(self, known: _Id) -> str:
        """What was wrong, "" = nothing."""
        specs = known.specs()
        events = [
            event
            for event in sorted(known.events, key=attrgetter("ticket"))
            if event.operation.concerns_one_of(specs)
        ]
        known.events.clear()
        for _, is_end, operation in events:
            if not is_end:
                known.pending[operation.number] = operation
                continue
            known.past.append(str(operation))
            worlds = {
                (state, effects - {operation.number})
                for state, effects in self._reached(known, operation.until_ms, operation.number)
                if operation.number in effects
            }
            if not worlds:
                return f"must not answer so: {operation}; was {known.possible()}"
            del known.pending[operation.number]
            known.worlds = worlds
        return ""

    def _settle(self, known: _Id, real: State, now_ms: int) -> str:
        """Take over the real state. Returns what is wrong with it, "" = nothing."""
        worlds = {
            (real, effects - {LOST})
            for state, effects in self._reached(known, now_ms)
            if is_one(state, real)
        }
        if not worlds:
            return f"is {real} at {now_ms}, could be {known.possible()}"
        known.worlds = worlds
        return ""

    def _reached(self, known: _Id, now_ms: int, goal: int = 0) -> set[World]:
        """All worlds that are possible by now, up to those in which the operation `goal` took effect."""
        seen: set[World] = set()
        left = list(known.worlds)
        while left:
            world = left.pop()
            if world in seen:
                continue
            seen.add(world)
            if len(seen) > MOST_WORLDS:
                raise TooManyWorlds
            if goal not in world[1]:
                left += self._next(known, world, now_ms)
        return seen

    def _next(self, known: _Id, world: World, now_ms: int) -> Iterator[World]:
        """One step further: by itself, or by an operation that is under way."""
        state, effects = world
        for after in alone(state, now_ms, self._between):
            yield after, effects
        for ticket, operation in known.pending.items():
            is_lost = operation.verb == "lost_pop"
            number = LOST if is_lost else ticket
            if number in effects:
                continue
            # what is real at a hold includes what was done by then
            since_ms = self._between[0] if is_lost else max(operation.since_ms, self._between[0])
            at = since_ms, min(operation.until_ms, self._between[1])
            for told, after in VERBS[operation.verb](state, operation.asked, at):
                if operation.told is None:
                    if after != state:
                        yield after, effects | {number}
                elif told.agrees(operation.told):
                    yield _exact(operation, after), effects | {number}


def is_one(state: State, real: State) -> bool:
    """Whether the state can be the real one, whose times are all exact."""
    if isinstance(state, Kept) and isinstance(real, Kept):
        same = (state.spec, state.state) == (real.spec, real.state)
        return same and overlap(state.until, real.until)
    if isinstance(state, Live) and isinstance(real, Live):
        same = replace(state, due=(0, 0), expire=None, deadline=None) == replace(
            real, due=(0, 0), expire=None, deadline=None
        )
        times = (
            (state.due, real.due),
            (state.expire, real.expire),
            (state.deadline, real.deadline),
        )
        return same and all(_can_be(one, other) for one, other in times)
    return state is real is None


def _can_be(one: Span | None, other: Span | None) -> bool:
    return one is other if one is None or other is None else overlap(one, other)


def _exact(operation: Operation, state: State) -> State:
    """With the time that the answer told."""
    time = operation.told.time if operation.told else None
    if not isinstance(state, Live) or time is None or time[0] != time[1]:
        return state
    if operation.verb in {"pop", "lost_pop"}:
        return replace(state, due=time)
    if operation.verb == "touch":
        return replace(state, deadline=time)
    if state.state == "delayed":
        return replace(state, due=time)
    return state
