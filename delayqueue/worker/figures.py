"""What a worker has done, and whether its loop goes on: figures for Prometheus and for health checks."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final

from delayqueue.domain.text import escaped
from delayqueue.tasks import cancel_all

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterator, Mapping

BEAT_S: Final = 1.0
# without a beat: a handler blocks the loop, so that no reservation is extended
LATE_S: Final = 15.0


class WorkerFigures:
    """The figures of one process. Written in its loop, read by any thread."""

    def __init__(self) -> None:
        self._running = 0  # handlers
        self._ends: Counter[tuple[str, str]] = Counter()  # by topic and outcome
        self._runs: Counter[str] = Counter()
        self._seconds: dict[str, float] = {}
        self.beat_s: float = time.monotonic()

    @property
    def jobs(self) -> int:
        """How many jobs have ended here."""
        return self._ends.total()

    @contextmanager
    def running(self, topic: str) -> Generator[None, None, None]:
        """Count a job whose handlers run in this block."""
        began_s = time.monotonic()
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            self._seconds[topic] = self._seconds.get(topic, 0.0) + time.monotonic() - began_s
            self._runs[topic] += 1  # the last: text() looks for the others of what is in it

    def ended(self, topic: str, outcome: str) -> None:
        """Count an attempt whose outcome the server has taken."""
        self._ends[topic, outcome] += 1

    @asynccontextmanager
    async def beating(self) -> AsyncGenerator[None, None]:
        """Show that the loop goes on while the block runs."""
        beat = asyncio.create_task(self._beat(), name="beat")
        try:
            yield
        finally:
            await cancel_all([beat])

    async def _beat(self) -> None:
        while True:
            self.beat_s = time.monotonic()
            await asyncio.sleep(BEAT_S)

    @property
    def blocked_s(self) -> float:
        """For how long the loop has been blocked; 0 if it goes on."""
        late_s = time.monotonic() - self.beat_s
        return late_s if late_s > LATE_S else 0.0

    def text(self) -> str:
        """The figures in Prometheus' text format."""
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        name = "delayqueue_worker_jobs_total"
        yield f"# HELP {name} Attempts whose outcome the server knows."
        yield f"# TYPE {name} counter"
        for (topic, outcome), count in sorted(self._ends.copy().items()):
            yield f"{name}{_labels(topic=topic, outcome=outcome)} {count}"
        name = "delayqueue_worker_handler_seconds"
        yield f"# HELP {name} How long handlers ran."
        yield f"# TYPE {name} summary"
        for topic, count in sorted(self._runs.copy().items()):
            yield f"{name}_sum{_labels(topic=topic)} {self._seconds[topic]:.6f}"
            yield f"{name}_count{_labels(topic=topic)} {count}"
        name = "delayqueue_worker_running"
        yield f"# HELP {name} Jobs whose handlers run now."
        yield f"# TYPE {name} gauge"
        yield f"{name} {self._running}"


def _labels(**labels: str) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


ESCAPES: Final[Mapping[int, str]] = {ord("\\"): r"\\", ord('"'): r"\"", ord("\n"): r"\n"}


def _escaped(value: str) -> str:
    return escaped(value.translate(ESCAPES), ESCAPES[ord("\\")])
