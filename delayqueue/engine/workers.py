"""The workers that tell their names with their polls: who they are, what they have in hand, whether they are alive.

A process sees its own workers poll and finish. What happened to a job that it handed out, the store knows, whichever
server heard of it: every few seconds the process asks for those that are still in hand (hold.lua), which also notes
there who has them, and writes what it knows of its workers, for all servers.
"""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NamedTuple

from delayqueue.answers.servers import WorkerStats
from delayqueue.domain.access import EVERYWHERE
from delayqueue.domain.job import Reserved
from delayqueue.domain.worker_identity import WorkerIdentity
from delayqueue.engine.heartbeat import SILENCE_MS, WINDOW_S
from delayqueue.engine.reports import MOST_SHOWN, is_lost, merged, read_worker
from delayqueue.errors import Code, Unavailable
from delayqueue.store.store import Store
from delayqueue.store.verbs import HOLD, Ending, Holding, NotHeld
from delayqueue.tasks import batched, by_turns

log = logging.getLogger(__name__)

INTERVAL_S: Final = 3.0
SETTLED_S: Final = 1.0  # a job that is in hand for less is not looked at: most are done by then
# of the time that a job has been in hand, until it is looked at again: one that has taken ten minutes takes longer
LOOK_SHARE: Final = 0.1
FORGOTTEN_S: Final = 60.0  # after the last sign of a worker that has nothing in hand
MOST_WORKERS: Final = 2000  # of one process; more are not seen
MOST_IN_HAND: Final = 10_000  # jobs of all these workers; more are not seen
MOST_CHARS: Final = 1024 * 1024  # written about them: a worker takes about 400
TOGETHER: Final = 500  # jobs that are looked at in one call

_written: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

# a job's id, and the nonce of its reservation; nobody is found by one without a nonce
Hold = tuple[str, str | None]


@dataclass(slots=True, eq=False)
class InHand:
    """A job that a worker got; times are loop times."""

    worker: "SeenWorker"
    id: str
    topic: str
    nonce: str
    since_s: float
    look_s: float  # when to ask the store about it
    deadline_ms: int | None = None  # None = not known yet
    is_over: bool = False  # it is asked about once more, so that the store forgets who had it


@dataclass(slots=True, eq=False)
class SeenWorker:
    """A worker that this process has seen; times are loop times."""

    identity: WorkerIdentity
    address: str
    since_s: float
    topics: tuple[str, ...] = ()
    seen_s: float = 0.0
    # the end of its poll: until then its connection shows that it is there
    waits_until_s: float = 0.0
    gone: bool = False  # a connection on which it waited broke, and there was no sign of life since
    finished: int = 0
    failed: int = 0
    window: deque[tuple[int, int]] = field(
        default_factory=lambda: deque([(0, 0)], maxlen=round(WINDOW_S / INTERVAL_S))
    )

    def heard(self, now_s: float) -> None:
        """Note a sign of life."""
        self.seen_s, self.gone = now_s, False

    def last_s(self, now_s: float) -> float:
        """The time of the last sign of life."""
        return max(self.seen_s, min(now_s, self.waits_until_s))


class WorkerCounts(NamedTuple):
    """How many workers are alive, and how many are gone with jobs in hand."""

    alive: int
    gone: int


class Workers:
    """The workers that this process has seen, and how those of all servers are read."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = name
        self._loop = asyncio.get_running_loop()
        self._seen: dict[str, SeenWorker] = {}
        self.in_hand: dict[Hold, InHand] = {}  # the oldest first
        self._last: dict[str, InHand] = {}  # by the job's id, of those in hand
        self._has_written = False

    def note_poll(
        self, identity: WorkerIdentity, topics: tuple[str, ...], wait_s: float, address: str
    ) -> SeenWorker | None:
        """Note that a worker begins to wait for jobs. Returns None if there are too many workers."""
        now_s = self._loop.time()
        seen = self._seen.get(identity.name)
        if seen is None:
            if len(self._seen) >= MOST_WORKERS:
                return None
            seen = self._seen[identity.name] = SeenWorker(identity, address, now_s)
        seen.identity, seen.address = identity, address
        if topics != seen.topics and set(topics) != set(seen.topics):  # it may change their order
            seen.topics = topics
        seen.waits_until_s = now_s + wait_s
        seen.heard(now_s)
        return seen

    def note_taken(self, seen: SeenWorker, jobs: Iterable[Reserved]) -> None:
        """Note that a worker's poll is answered with these jobs."""
        now_s = seen.waits_until_s = self._loop.time()
        seen.heard(now_s)
        for job in jobs:
            # the job was delivered again: so the attempt before has failed, whatever the store says of it later
            if before := self._last.get(job.id):
                self.note_given_back(before.id, before.nonce)
            if len(self.in_hand) >= MOST_IN_HAND:
                return
            self.in_hand[job.id, job.nonce] = self._last[job.id] = InHand(
                seen, job.id, job.topic, job.nonce, now_s, now_s + SETTLED_S
            )

    def note_left(self, seen: SeenWorker, jobs: Iterable[Reserved] = ()) -> None:
        """Note that a worker's connection broke while it waited, or before it got these jobs."""
        now_s = self._loop.time()
        seen.seen_s = seen.waits_until_s = now_s
        seen.gone = True
        for job in jobs:
            if known := self.in_hand.get((job.id, job.nonce)):
                self._end(known, now_s)

    def note_finished(self, endings: Sequence[Ending], codes: Sequence[int]) -> list[int]:
        """Note that jobs were finished, with these codes; returns the codes."""
        now_s = self._loop.time()
        for ending, code in zip(endings, codes, strict=True):
            job = self.in_hand.get((ending.id, ending.nonce))
            if code == Code.OK and job is not None and not job.is_over:
                job.worker.finished += 1
                job.worker.heard(now_s)
                self._end(job, now_s)
        return list(codes)

    def note_given_back(self, job_id: str, nonce: str | None) -> None:
        """Note that the attempt of this reservation has failed; without a nonce nobody knows which."""
        job = self.in_hand.get((job_id, nonce))
        if job is not None and not job.is_over:
            job.worker.failed += 1
            self._end(job, self._loop.time())

    def _end(self, job: InHand, now_s: float) -> None:
        """Note that a job is no longer in hand."""
        if now_s - job.since_s < SETTLED_S:  # the store does not know who has it
            self._forget(job)
        else:
            job.is_over, job.look_s = True, now_s

    def _forget(self, job: InHand) -> None:
        del self.in_hand[job.id, job.nonce]
        if self._last.get(job.id) is job:
            del self._last[job.id]

    async def run(self) -> None:
        """Look after the jobs in hand, and write reports for the other servers, until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL_S)
            try:
                await self.look()
                await self.tell()
            except Unavailable:
                log.debug("the workers cannot be told")

    async def all(self) -> list[WorkerStats]:
        """The workers that all servers have seen, by name, and first those that are gone with jobs in hand.

        Raises Unavailable if the store does not answer.
        """
        found: dict[str, WorkerStats] = {}
        for _, heard_ms, written in await self._store.registry.reports("workers", SILENCE_MS):
            rows: list[Mapping[str, Any]] = json.loads(written)
            async for row in by_turns(rows):
                seen = read_worker(row, heard_ms / 1000)
                known = found.get(seen.name)
                found[seen.name] = merged(known, seen) if known else seen
        return sorted(found.values(), key=lambda one: (not is_lost(one), one.name))

    async def count(self) -> WorkerCounts:
        """How many of all() are alive, and how many are lost. Raises Unavailable if the store does not answer."""
        found = await self.all()
        return WorkerCounts(sum(not one.gone for one in found), sum(map(is_lost, found)))

    async def look(self) -> None:
        """Ask the store about the jobs that are due for a look."""
        now_s = self._loop.time()
        jobs = [job for job in self.in_hand.values() if job.look_s <= now_s]
        for piece in batched(jobs, TOGETHER):
            items = [
                Holding(
                    job.id, job.topic, job.nonce, job.worker.identity.name, job.deadline_ms or 0
                )
                for job in piece
            ]
            results = await self._store.run(HOLD, items, EVERYWHERE)
            for job, result in zip(piece, results, strict=True):
                self._note(job, result, now_s)

    def _note(self, job: InHand, result: int | NotHeld, now_s: float) -> None:
        """Note the store's answer about a job, which may have been finished meanwhile."""
        worker = job.worker
        if result is NotHeld.UNKNOWN:
            return
        if isinstance(result, NotHeld):
            self._forget(job)
            if not job.is_over:
                worker.finished += result is NotHeld.ENDED
                worker.failed += result is NotHeld.GIVEN_BACK
        elif not job.is_over:
            if job.deadline_ms is not None and result != job.deadline_ms:  # it was extended
                worker.heard(now_s)
            job.deadline_ms = result
            job.look_s = now_s + LOOK_SHARE * (now_s - job.since_s)

    async def tell(self) -> None:
        """Write what is known of the workers, and forget those that gave no sign of life for long."""
        now_s = self._loop.time()
        jobs: dict[SeenWorker, list[InHand]] = {}
        for job in self.in_hand.values():
            if not job.is_over:
                jobs.setdefault(job.worker, []).append(job)
        # at the limit, silent ones make room at once; one in a poll, or with jobs in hand, is never forgotten
        forgotten_s = FORGOTTEN_S if len(self._seen) < MOST_WORKERS else 0
        rows: list[str] = []
        size = 0
        async for seen in by_turns(list(self._seen.values())):
            mine = jobs.get(seen, [])
            if not mine and now_s - seen.last_s(now_s) > forgotten_s:
                del self._seen[seen.identity.name]
                continue
            row = _written(_row(seen, mine, now_s))
            size += len(row)
            if size <= MOST_CHARS:
                rows.append(row)
            seen.window.append((seen.finished, seen.failed))
        if rows or self._has_written:
            await self._store.registry.heartbeat(
                "workers", self._name, f"[{','.join(rows)}]", SILENCE_MS
            )
        self._has_written = bool(rows)


def _row(seen: SeenWorker, in_hand: Sequence[InHand], now_s: float) -> dict[str, Any]:
    """What is written of a worker: ages in seconds instead of times, because servers have clocks of their own."""
    jobs = [job for job in in_hand if job.deadline_ms is not None]
    finished, failed = seen.window[0]
    return {
        **seen.identity._asdict(),
        "address": seen.address,
        "topics": seen.topics,
        "since": round(now_s - seen.since_s, 1),
        "seen": round(now_s - seen.last_s(now_s), 1),
        "gone": seen.gone,
        "in_hand": len(jobs),
        "until": max((job.deadline_ms or 0 for job in jobs), default=None),
        "jobs": [
            (job.id, job.topic, round(now_s - job.since_s, 1), job.deadline_ms)
            for job in islice(jobs, MOST_SHOWN)
        ],
        "finished": seen.finished - finished,
        "failed": seen.failed - failed,
    }
