"""Counts what happened to jobs recently, by topic; the history is made of it. No IO."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MOST_TOPICS: Final = 10_000  # counted separately until the counts are taken
# the events that count, and as what; /take hands a job out and ends it
COUNTED: Final = {
    "pushed": ("pushed",),
    "delivered": ("delivered",),
    "finished": ("finished",),
    "taken": ("delivered", "finished"),
    "failed": ("failed",),
}


@dataclass(slots=True)
class Counts:
    """Jobs pushed, handed out and finished, and attempts that failed; lateness is measured at the first delivery."""

    pushed: int = 0
    delivered: int = 0
    finished: int = 0
    failed: int = 0
    late: int = 0  # how many were measured
    late_sum_ms: int = 0
    late_worst_ms: int = 0

    def add(self, more: "Counts") -> None:
        """Add another topic's counts."""
        self.pushed += more.pushed
        self.delivered += more.delivered
        self.finished += more.finished
        self.failed += more.failed
        self.late += more.late
        self.late_sum_ms += more.late_sum_ms
        self.late_worst_ms = max(self.late_worst_ms, more.late_worst_ms)


class TopicCounters:
    """Counts that are taken from time to time.

    The first topics to appear are counted separately, all others together.
    """

    def __init__(self) -> None:
        self._topics: dict[str, Counts] = {}
        self._others = Counts()

    def count(self, event: str, topic: str, number: int, times_ms: Sequence[int]) -> None:
        """Count an event of `number` jobs of a topic; the times in ms say how late or how long they were."""
        if event not in COUNTED and not (event == "deleted" and times_ms):
            return
        counts = self._topics.get(topic)
        if counts is None:
            if len(self._topics) < MOST_TOPICS:
                counts = self._topics[topic] = Counts()
            else:
                counts = self._others
        for name in COUNTED.get(event, ()):
            setattr(counts, name, getattr(counts, name) + number)
        if event == "deleted":  # by the client that held it, when done, as with beanstalkd
            counts.finished += len(times_ms)
        elif event == "delivered" and times_ms:
            counts.late += len(times_ms)
            counts.late_sum_ms += sum(times_ms)
            counts.late_worst_ms = max(counts.late_worst_ms, *times_ms)

    def take(self, most: int) -> tuple[dict[str, Counts], Counts]:
        """Take the counts of the busiest topics, and of all others together; all start from 0 again."""
        topics, others = self._topics, self._others
        self._topics, self._others = {}, Counts()
        ordered = sorted(topics, key=lambda topic: -_events(topics[topic]))
        for topic in ordered[most:]:
            others.add(topics[topic])
        return {topic: topics[topic] for topic in ordered[:most]}, others


def _events(counts: Counts) -> int:
    return counts.pushed + counts.delivered + counts.finished + counts.failed
