"""Checks a whole bucket for damage, one bounded step at a time, while servers keep working on it.

`delay-queue fsck` takes the steps one after the other, the timer one now and then (scrubber.py).
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from delayqueue.domain import damage
from delayqueue.store.bucket import Bucket
from delayqueue.store.store import Store
from delayqueue.store.types import Change, Finding, Inspected, Piece

STEP: Final = 300  # entries that a step checks: about 2 ms of the store's time
MOST_SUSPECTS: Final = 100_000  # kept at a time, about 10 MB
WINDOW: Final = 2000  # entries of a ready list that are read at a time
OVERLAP: Final = 1000  # of two windows: up to this many ghosts may leave the list between two reads
PASSES: Final = 5  # at most in a repair; repairing one thing can reveal another

PIECES: Final = 200  # passed to a step

NOTHING: Final = Inspected([], 0, [], [], Change([]))
KEYSPACE: Final = Piece(b"", b"0")


@dataclass
class Report:
    """What was found in all buckets, by kind; `left` could not be repaired, `lost` are jobs without a record."""

    looked: int = 0
    found: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    lost: int = 0


async def examine(store: Store, tell: Callable[[int, Finding], None], *, repair: bool) -> Report:
    """Check everything in the store; `tell(bucket, finding)` is called once for each finding.

    With `repair` the damage is repaired, and checked again until nothing more is found. Raises Unavailable if the store
    fails.
    """
    report = Report()
    for bucket in store.in_force:
        known: set[Finding] = set()
        findings: set[Finding] = set()
        for _ in range(PASSES if repair else 1):
            findings = await _check_all(Pass(bucket, repair=repair), report)
            for finding in sorted(findings - known):
                tell(bucket.number, finding)
            known |= findings
            if not any(finding.repaired for finding in findings):
                break
        report.found.update(finding.kind for finding in known)
        repaired = (each.kind for each in known if each.repaired and each.kind != damage.LOST)
        report.repaired.update(repaired)
        report.left.update(finding.kind for finding in findings)
    return report


async def _check_all(check: "Pass", report: Report) -> set[Finding]:
    """Make all steps of a pass. Returns what it found."""
    findings: set[Finding] = set()
    while not check.is_over:
        seen = await check.step()
        findings.update(seen.findings)
        report.lost += sum(number for _, number in seen.lost)
    report.looked += check.looked
    return findings


class Pass:
    """One check of everything in a bucket."""

    def __init__(self, bucket: Bucket, limit: int = STEP, *, repair: bool) -> None:
        """`limit` is how many entries a step checks."""
        self._bucket = bucket
        self._limit = limit
        self._repair = repair
        self._pieces = [KEYSPACE]  # the next one comes last
        # Jobs that are lost unless they are in their ready lists, by topic. Those lists are read when there are many
        # such jobs, or everything else is done.
        self._suspects: dict[bytes, set[bytes]] = {}
        self._suspected = 0
        self._place = 0  # in the list of the first topic, counted from its end
        self.looked = 0  # entries so far

    @property
    def is_over(self) -> bool:
        """Whether everything was checked."""
        return not self._pieces and not self._suspects

    async def step(self) -> Inspected:
        """Make one call of the store, until the pass is over.

        Raises Unavailable if it fails; it can be tried again.
        """
        if not self._pieces or self._place < 0 or self._suspected >= MOST_SUSPECTS:
            return await self._look_through_list()
        pieces = self._pieces[-PIECES:]
        seen = await self._bucket.inspect(pieces, self._limit, repair=self._repair)
        self._pieces[-PIECES:] = seen.pieces
        self.looked += seen.looked
        self._suspected += len(seen.suspects)
        for topic, job_id in seen.suspects:
            self._suspects.setdefault(topic, set()).add(job_id)
        return seen

    async def _look_through_list(self) -> Inspected:
        """Read a window of a ready list: jobs in it are not lost.

        Reads from the end, because consumers take from the head: positions counted from the end stay the same.
        """
        topic, suspects = next(iter(self._suspects.items()))
        first, last = self._place - WINDOW, self._place - 1
        ids = await self._bucket.ready_ids(topic, first, last)
        suspects.difference_update(ids)
        self._place -= WINDOW - OVERLAP
        if not suspects or len(ids) < WINDOW:
            self._pieces += [Piece(b"job", b"=" + job_id) for job_id in suspects]
            del self._suspects[topic]
            self._suspected = sum(map(len, self._suspects.values()))
            self._place = 0
        return NOTHING
