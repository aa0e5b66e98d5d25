"""Tells other server processes that this one is alive, with its figures, and reads theirs."""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from itertools import accumulate
from time import time
from typing import Final, Self

from delayqueue import __version__
from delayqueue.domain.call_tally import HostCalls
from delayqueue.domain.outboxes import Outbox, Outboxes
from delayqueue.domain.written import known
from delayqueue.errors import Unavailable
from delayqueue.metrics import DELIVERY_LATENESS, LATENESS_S, WAITING_POLLS, Metrics
from delayqueue.store.bucket.bucket_store import BucketStore

log = logging.getLogger(__name__)

INTERVAL_S: Final = 2.0
SILENCE_MS: Final = 15_000  # after this silence a process counts as gone
WINDOW_S: Final = 60.0  # lateness covers the last minute


@dataclass(frozen=True, slots=True)
class ServerView:
    """A server process. Counters since its start; lateness in seconds, None if nothing was delivered recently."""

    name: str
    seen: float  # unix seconds, by the store's clock
    version: str = ""
    started: float = 0  # unix seconds, by its own clock
    pushed: int = 0
    delivered: int = 0
    finished: int = 0
    waiting: int = 0
    lateness_p50: float | None = None
    lateness_p99: float | None = None
    call_limit: int = 0  # calls of jobs at once to one host; 0 = it makes none
    calls: tuple[HostCalls, ...] = ()  # to the hosts with the most trouble
    outboxes: tuple[Outbox, ...] = ()
    halts: bool = False  # while the number of buckets is changed; an older version goes on

    @classmethod
    def read(cls, name: str, seen_ms: int, figures: str) -> Self:
        """Parse what a server wrote; fields that only a newer version knows are ignored."""
        written = json.loads(figures)
        told = known(cls, written) | {"name": name, "seen": seen_ms / 1000}
        told["calls"] = tuple(map(HostCalls.read, written.get("calls", ())))
        told["outboxes"] = tuple(map(Outbox.read, written.get("outboxes", ())))
        return cls(**told)


_FIGURES: Final = frozenset(field.name for field in fields(ServerView)) - {"name", "seen"}
# Left out while they say nothing: the first version refuses what it does not know. The others it must be told.
_LATER: Final = frozenset({"call_limit", "calls", "outboxes"})


class Heartbeat:
    """This process's entry, written every two seconds, and those of all processes."""

    def __init__(self, store: BucketStore, metrics: Metrics, name: str) -> None:
        self._store = store
        self._metrics = metrics
        self._name = name
        self.outboxes = Outboxes()
        self._started = time()
        self.noted_at: float | None = None  # loop time at which the store last accepted the entry
        self.has_failed = False  # at the last try
        self._window: deque[Sequence[int]] = deque(maxlen=round(WINDOW_S / INTERVAL_S) + 1)

    async def run(self) -> None:
        """Write the entry until cancelled."""
        while True:
            self._window.append(self._late())
            try:
                figures = json.dumps(self._figures())
                await self._store.heartbeat("servers", self._name, figures, SILENCE_MS)
                self.noted_at = asyncio.get_running_loop().time()
                self.has_failed = False
            except Unavailable:
                self.has_failed = True
                log.debug("heartbeat failed")
            await asyncio.sleep(INTERVAL_S)

    async def servers(self) -> list[ServerView]:
        """All processes that were alive recently, by name. Raises Unavailable if the store does not answer."""
        entries = await self._store.servers("servers", SILENCE_MS)
        return sorted(
            (ServerView.read(*entry) for entry in entries), key=lambda server: server.name
        )

    def _figures(self) -> dict[str, object]:
        figures = self._metrics.snapshot()
        calls = self._metrics.calls
        late = [now - then for now, then in zip(self._window[-1], self._window[0], strict=True)]
        view = ServerView(
            name="",
            seen=0,
            version=__version__,
            started=self._started,
            pushed=self._metrics.events("pushed"),
            delivered=self._metrics.events("delivered"),
            finished=self._metrics.events("finished"),
            waiting=sum(count for _, count in figures[WAITING_POLLS.name]),
            lateness_p50=quantile(late, 0.5),
            lateness_p99=quantile(late, 0.99),
            call_limit=calls.per_host if calls else 0,
            calls=tuple(calls.report()) if calls else (),
            outboxes=tuple(self.outboxes.report()),
            halts=True,
        )
        return {
            field: value
            for field, value in asdict(view).items()
            if field in _FIGURES and (value or field not in _LATER)
        }

    def _late(self) -> Sequence[int]:
        (row,) = self._metrics.snapshot()[DELIVERY_LATENESS.name]
        counts: Sequence[int] = row[1]
        return counts


def quantile(counts: Sequence[int], share: float) -> float | None:
    """The upper end, in seconds, of the LATENESS_S bucket at this quantile of the jobs; None = no jobs."""
    total = sum(counts)
    if not total:
        return None
    for place, so_far in enumerate(accumulate(counts)):
        if so_far >= share * total:
            return LATENESS_S[min(place, len(LATENESS_S) - 1)]
    return None
