"""What goes wrong again and again, as one process sees it, for operators. No IO."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from time import monotonic
from typing import Final

MOST: Final = 50  # remembered, the latest ones
MAX_MESSAGE_CHARS: Final = 200
FORGOTTEN_S: Final = 3600.0
# A TTR can be a day: then a job that hangs times out once a day.
FORGOTTEN_JOB_S: Final = 25 * 3600.0
HANGS_AFTER: Final = 3  # attempts whose TTR expired: one can be bad luck
FAILS_AFTER: Final = 3  # calls of a subscriber that failed one after the other


class Kind(StrEnum):
    """What can be in trouble."""

    JOB = "job"  # its TTR expires again and again
    WORKER = "worker"  # the TTR of jobs that it had expired
    SUBSCRIBER = "subscriber"  # all calls fail
    HOST = "host"  # all calls of jobs to it fail
    PUSHES = "pushes"  # they are refused
    CONNECTIONS = "connections"  # they are refused
    LOST = "lost"  # jobs of a topic, whose records the store has dropped


@dataclass(frozen=True, slots=True)
class TroubleReport:
    """`name`: of the job, worker, subscriber, host or topic, or the code of refused pushes; `topic`: the job's.

    `count`: of a job the attempt, else how often it happened; last `ago_s` ago, with this `message`.
    """

    kind: str
    name: str
    topic: str = ""
    count: int = 1
    ago_s: float = 0
    message: str = ""


class Troubles:
    """The troubles that this process has noticed."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        # the latest one last
        self._noted = OrderedDict[tuple[Kind, str], tuple[float, TroubleReport]]()

    def note(
        self, kind: Kind, name: str, *, topic: str = "", message: str = "", count: int = 1
    ) -> None:
        """Count a trouble `count` times more."""
        _, before = self._noted.pop((kind, name), (0, None))
        noted = TroubleReport(
            kind,
            name,
            topic,
            count + (before.count if before else 0),
            0,
            message[:MAX_MESSAGE_CHARS],
        )
        self._noted[kind, name] = self._now(), noted
        if len(self._noted) > MOST:
            self._noted.popitem(last=False)

    def note_timeout(self, topic: str, job_id: str, attempt: int, worker: str) -> None:
        """The TTR of a job has expired while this worker had it, "" = unknown."""
        if worker:
            self.note(Kind.WORKER, worker, topic=topic, message=job_id)
        if attempt >= HANGS_AFTER:
            self.forget(Kind.JOB, job_id)
            self.note(Kind.JOB, job_id, topic=topic, message=worker, count=attempt)

    def forget(self, kind: Kind, name: str) -> None:
        """Forget a trouble: its job, call or host has done well."""
        self._noted.pop((kind, name), None)

    def report(self) -> Iterator[TroubleReport]:
        """The troubles that are recent and frequent enough to report, the latest first."""
        for (kind, _), (at_s, noted) in reversed(self._noted.items()):
            ago_s = round(self._now() - at_s, 3)
            kept_s = FORGOTTEN_JOB_S if kind is Kind.JOB else FORGOTTEN_S
            if ago_s <= kept_s and (kind is not Kind.SUBSCRIBER or noted.count >= FAILS_AFTER):
                yield replace(noted, ago_s=ago_s)


def merge_troubles(
    reports: Iterable[tuple[float, TroubleReport]],
) -> list[tuple[float, TroubleReport]]:
    """The reports of several processes, one for each trouble, with the unix time of its last event, latest first."""
    found: dict[tuple[str, str], tuple[float, TroubleReport]] = {}
    for at, one in sorted(reports, key=lambda each: each[0]):
        before = found.get((one.kind, one.name))
        if before and one.kind != Kind.JOB:
            found[one.kind, one.name] = at, replace(one, count=one.count + before[1].count)
        else:
            found[one.kind, one.name] = at, one
    return sorted(found.values(), key=lambda each: -each[0])
