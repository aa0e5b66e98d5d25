"""What belongs to one connection: the tubes it uses and watches, and the jobs that it has reserved. No IO."""

import math
from dataclasses import dataclass
from typing import Final

from delayqueue.beanstalk.tubes import DEFAULT, Tube, Tubes
from delayqueue.domain.job import Reserved

MARGIN_S: Final = 1.0  # before a TTR runs out: nobody is let wait for another job then
MOST_WATCHED: Final = 65_536  # tubes of one connection: about 40 MB
DEFAULT_ONLY: Final = (DEFAULT,)


@dataclass(slots=True)
class Held:
    """A job that is reserved for the connection, without its body."""

    job: Reserved
    deadline: float  # loop time


class Session:
    """The state of a connection. `close` gives it up."""

    __slots__ = (
        "_jobs",
        "_soonest",
        "_topics",
        "_tubes",
        "_watched",
        "has_ended",
        "is_closed",
        "is_producer",
        "is_waiting",
        "is_worker",
        "latest",
        "used",
    )

    def __init__(self, tubes: Tubes) -> None:
        self._tubes = tubes
        self.used = tubes.default
        self._watched: dict[str, Tube] | None = None  # None = the default one only
        self._topics: tuple[str, ...] | None = None
        self._jobs: dict[int, Held] | None = None  # by number; None = was not needed yet
        self._soonest: float | None = None  # deadline of a job; None = to be looked up
        self.is_producer = False  # has put
        self.is_worker = False  # has reserved
        self.is_waiting = False  # for a job
        self.has_ended = False  # the client sends nothing more
        self.is_closed = False
        self.latest: int | None = None  # the job that it was told of last
        tubes.default.users += 1
        tubes.default.watchers += 1

    @property
    def watched(self) -> tuple[str, ...]:
        """The names of the tubes that it watches, in the order in which it came to them."""
        if self._watched is None:
            return DEFAULT_ONLY
        if self._topics is None:
            self._topics = tuple(self._watched)
        return self._topics

    def watches(self, name: str) -> bool:
        """Whether it watches this tube."""
        return name in (DEFAULT_ONLY if self._watched is None else self._watched)

    def use(self, name: str) -> None:
        """Jobs that it puts go there from now on."""
        former, self.used = self.used, self._tubes[name]
        self.used.users += 1
        former.users -= 1
        self._tubes.release(former)

    def watch(self, name: str) -> int:
        """Take jobs from that tube, too; of how many in all, 0 = it has as many as may be."""
        watched = self._all_watched()
        if name not in watched:
            if len(watched) >= MOST_WATCHED:
                return 0
            tube = watched[name] = self._tubes[name]
            tube.watchers += 1
            self._topics = None
        return len(watched)

    def ignore(self, name: str) -> int:
        """Take no jobs from that tube any more; of how many others, 0 = it is the only one and stays."""
        watched = self._all_watched()
        tube = watched.get(name)
        if tube is not None:
            if len(watched) == 1:
                return 0
            del watched[name]
            tube.watchers -= 1
            self._tubes.release(tube)
            self._topics = None
        return len(watched)

    def hold(self, number: int, job: Reserved, now: float) -> None:
        """The job is reserved for this connection, which is told so next."""
        self.latest = number
        job.body = ""  # the client has it
        self.put_back(number, Held(job, now + job.ttr_ms / 1000))

    def put_back(self, number: int, held: Held) -> None:
        """The job is still reserved for it."""
        self.take(number)  # an earlier reservation, which somebody else has ended
        if self._jobs is None:
            self._jobs = {}
        self._jobs[number] = held
        if self._soonest is not None:
            self._soonest = min(self._soonest, held.deadline)

    def held(self, number: int) -> Held | None:
        """The job of that number, if it is reserved for this connection."""
        return self._jobs.get(number) if self._jobs else None

    def take(self, number: int) -> Held | None:
        """The same, and it is not reserved for it any more."""
        held = self._jobs.pop(number, None) if self._jobs else None
        if held is not None and held.deadline == self._soonest:
            self._soonest = None
        return held

    def touched(self, held: Held, deadline: float) -> None:
        """The job has until then."""
        held.deadline = deadline
        self._soonest = None

    def deadline(self, now: float) -> float:
        """When the first TTR of its jobs runs out, inf without any. Those whose time is over are not its any more."""
        if not self._jobs:
            return math.inf
        if self._soonest is None or self._soonest <= now:
            held_before = len(self._jobs)
            self._jobs = {
                number: held for number, held in self._jobs.items() if held.deadline > now
            }
            self._tubes.timeouts += held_before - len(self._jobs)
            self._soonest = min((held.deadline for held in self._jobs.values()), default=math.inf)
        return self._soonest

    def close(self, now: float) -> dict[int, Reserved]:
        """Leave the tubes; the jobs that were reserved for it, by their numbers."""
        self.is_closed = True
        self.used.users -= 1
        self._tubes.release(self.used)
        for tube in self._all_watched().values():
            tube.watchers -= 1
            self._tubes.release(tube)
        self.deadline(now)
        jobs, self._jobs = self._jobs, None
        return {number: held.job for number, held in jobs.items()} if jobs else {}

    def _all_watched(self) -> dict[str, Tube]:
        if self._watched is None:
            self._watched = {DEFAULT: self._tubes.default}
        return self._watched
