"""The state of one connection: the tubes that it uses and watches, and the jobs that it has reserved. No IO."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from delayqueue.beanstalk.tubes import DEFAULT, Tube, Tubes
from delayqueue.domain.job import Reserved

if TYPE_CHECKING:
    from collections.abc import Callable

MARGIN_S: Final = 1.0  # before a TTR expires: then no client waits for another job
MOST_WATCHED: Final = 10_000  # tubes of one connection: about 8 MB
MOST_FORMER: Final = 1000  # jobs of one connection whose reservation has ended
DEFAULT_ONLY: Final = (DEFAULT,)


@dataclass(slots=True)
class Held:
    """A job that is reserved for the connection, without its body."""

    job: Reserved
    deadline: float  # loop time


class Session:
    """The state of a connection. `close` ends it."""

    __slots__ = (
        "_former",
        "_jobs",
        "_soonest",
        "_topics",
        "_tubes",
        "_watched",
        "has_ended",
        "is_closed",
        "is_producer",
        "is_worker",
        "latest",
        "leave",
        "used",
    )

    def __init__(self, tubes: Tubes) -> None:
        self._tubes = tubes
        self.used = tubes.default
        self._watched: dict[str, Tube] | None = None  # None = only the default one
        self._topics: tuple[str, ...] | None = None
        self._jobs: dict[int, Held] | None = None  # by number; None = not needed so far
        self._former: dict[int, Held] | None = None  # whose reservation has ended; None = none
        self._soonest: float | None = None  # the earliest deadline; None = must be looked up
        self.is_producer = False  # has put
        self.is_worker = False  # has reserved
        # ends its wait for a job; None = it does not wait
        self.leave: Callable[[], object] | None = None
        self.has_ended = False  # the client sends nothing more
        self.is_closed = False
        self.latest: int | None = None  # the job that its client got last
        tubes.default.users += 1
        tubes.default.watchers += 1

    def stop_waiting(self) -> None:
        """End its wait for a job, if it waits."""
        if self.leave is not None:
            self.leave()

    @property
    def watched(self) -> tuple[str, ...]:
        """The names of the watched tubes, in the order in which they were added."""
        if self._watched is None:
            return DEFAULT_ONLY
        if self._topics is None:
            self._topics = tuple(self._watched)
        return self._topics

    def watches(self, name: str) -> bool:
        """Whether the connection watches this tube."""
        return name in (DEFAULT_ONLY if self._watched is None else self._watched)

    def use(self, name: str) -> None:
        """Put jobs into this tube from now on."""
        former, self.used = self.used, self._tubes[name]
        self.used.users += 1
        former.users -= 1
        self._tubes.release(former)

    def watch(self, name: str) -> int:
        """Watch this tube, too. Returns how many are watched, 0 = no more are allowed."""
        watched = self._all_watched()
        if name not in watched:
            if len(watched) >= MOST_WATCHED or not self._tubes.begin_watch(len(watched)):
                return 0
            tube = watched[name] = self._tubes[name]
            tube.watchers += 1
            self._topics = None
        return len(watched)

    def ignore(self, name: str) -> int:
        """Stop watching this tube. Returns how many are left, 0 = it is the only one and stays."""
        watched = self._all_watched()
        tube = watched.get(name)
        if tube is not None:
            if len(watched) == 1:
                return 0
            del watched[name]
            tube.watchers -= 1
            self._tubes.end_watch(len(watched))
            self._tubes.release(tube)
            self._topics = None
        return len(watched)

    def hold(self, number: int, job: Reserved, now: float) -> None:
        """Note that the job is reserved for this connection."""
        self.latest = number
        job.body = b""  # the client has it
        self.put_back(number, Held(job, now + job.ttr_ms / 1000))

    def put_back(self, number: int, held: Held) -> None:
        """Note that the connection still holds the job."""
        if self._jobs is None:
            self._jobs = {}
        elif number in self._jobs:  # an earlier reservation, which somebody else has ended
            self.take(number)
        if self._former is not None:
            self.take_former(number)
        self._jobs[number] = held
        if self._soonest is not None:
            self._soonest = min(self._soonest, held.deadline)

    def held(self, number: int) -> Held | None:
        """The job with that number, if this connection holds it."""
        return self._jobs.get(number) if self._jobs else None

    def take(self, number: int) -> Held | None:
        """The job with that number, if this connection has held it until now."""
        held = self._jobs.pop(number, None) if self._jobs else None
        if held is not None and held.deadline == self._soonest:
            self._soonest = None
        return held

    def lose(self, number: int, held: Held) -> None:
        """The job's reservation has ended without this connection: it may still delete the job."""
        self.take(number)
        if self._former is None:
            self._former = {}
        self._former.pop(number, None)
        self._former[number] = held
        if len(self._former) > MOST_FORMER:
            del self._former[next(iter(self._former))]

    def take_former(self, number: int) -> Held | None:
        """The job with that number, if its reservation was this connection's and has ended; it is then forgotten."""
        return self._former.pop(number, None) if self._former else None

    def touched(self, held: Held, deadline: float) -> None:
        """Set a job's new deadline."""
        held.deadline = deadline
        self._soonest = None

    def deadline(self, now: float) -> float:
        """When the first TTR of its jobs expires, inf without any. Jobs whose time is over are no longer held."""
        if not self._jobs:
            return math.inf
        if self._soonest is None or self._soonest <= now:
            over = [(n, held) for n, held in self._jobs.items() if held.deadline <= now]
            for number, held in over:
                self.lose(number, held)
            self._tubes.timeouts += len(over)
            self._soonest = min((held.deadline for held in self._jobs.values()), default=math.inf)
        return self._soonest

    def close(self, now: float) -> dict[int, Reserved]:
        """Leave the tubes; returns the jobs that it held, by number."""
        self.is_closed = True
        self.used.users -= 1
        self._tubes.release(self.used)
        for others, tube in enumerate(self._all_watched().values()):
            tube.watchers -= 1
            self._tubes.end_watch(others)
            self._tubes.release(tube)
        self.deadline(now)
        jobs, self._jobs = self._jobs, None
        return {number: held.job for number, held in jobs.items()} if jobs else {}

    def _all_watched(self) -> dict[str, Tube]:
        if self._watched is None:
            self._watched = {DEFAULT: self._tubes.default}
        return self._watched
