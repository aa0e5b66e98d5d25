"""Counts and times of a process, in plain numbers: cheap to write, and easy to send to another process. No IO.

This file names what one process knows; web/metrics.py shows it to Prometheus.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from delayqueue.domain import damage

if TYPE_CHECKING:
    from delayqueue.domain.call_counters import CallCounters
    from delayqueue.domain.topic_counters import TopicCounters

# Upper ends of the buckets, in seconds.
SCRIPT_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
LATENESS_S: Final = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1,
    5,
    15,
    60,
    300,
    3600,
)
HANDLING_S: Final = (0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 86_400)

EVENTS: Final = (
    "pushed",
    "due",  # was delayed, and is ready
    "delivered",
    "returned",  # delivered to nobody: the client was gone, or another bucket was faster
    "finished",
    "deleted",
    "released",
    "timed_out",
    "failed",  # attempts: released, timed out, or buried by their worker
    "buried",
    "kicked",
    "expired",
    "dropped",  # for a newer one, since its topic has max_jobs
    "buried_expired",  # its topic no longer keeps buried jobs
    "cancelled",
    "taken",
    "lost",  # the store dropped its record
    "purged",
)
WARNINGS: Final = (
    "unknown_field",
    "long_delay",  # longer than a year
    "other_topic",  # has a job with the id that was pushed
)
LIMITS: Final = (
    "connections",  # max_connections
    "idle",  # connections: they were closed for new ones
    "open_files",  # of the system: a look, two a second, that found none left, so connections were reset
    "unanswered",  # incomplete requests, as all together had too many bytes
    "watched",  # tubes of beanstalkd clients
)
REPAIRED: Final = (
    "set_aside",  # an impossible entry
    "ghosts",  # leftover entries of a ready list
    *damage.MENDABLE,
)


@dataclass(frozen=True, eq=False, slots=True)
class Metric:
    """A metric. With `bounds` it is a histogram of seconds, otherwise a counter or a gauge."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    known: tuple[str, ...] = ()  # shown as 0 from the start, so that the first one is an increase


REQUESTS: Final = Metric(
    "delayqueue_requests", "Answered requests, by the code in their envelope.", ("path", "code")
)
JOB_EVENTS: Final = Metric(
    "delayqueue_job_events", "What happened to jobs, by event.", ("event", "topic")
)
REQUEST_WARNINGS: Final = Metric(
    "delayqueue_request_warnings",
    "Requests, or jobs of an array, that say what their client can hardly mean.",
    ("warning",),
    known=WARNINGS,
)
REFUSED: Final = Metric(
    "delayqueue_refused",
    "What was refused because all clients together had too much of it.",
    ("limit",),
    known=LIMITS,
)
SUBSCRIBER_CALLS: Final = Metric(
    "delayqueue_subscriber_calls", "Calls of subscribers.", ("subscriber", "outcome")
)
REPAIRS: Final = Metric(
    "delayqueue_repairs", "Damage that was found and mended.", ("repair",), known=REPAIRED
)
SCRIPT_SECONDS: Final = Metric(
    "delayqueue_script_seconds",
    "Time of a call of the store, as the server sees it.",
    ("script",),
    SCRIPT_S,
)
SCRIPT_ERRORS: Final = Metric(
    "delayqueue_script_errors", "Calls that the store did not answer, or refused.", ("script",)
)
READY_LATENESS: Final = Metric(
    "delayqueue_ready_lateness_seconds",
    "From due to ready: of each tick and topic the oldest job that it moved.",
    bounds=LATENESS_S,
)
DELIVERY_LATENESS: Final = Metric(
    "delayqueue_delivery_lateness_seconds",
    "From due, or pushed if that was later, to delivered, of first deliveries.",
    bounds=LATENESS_S,
)
CALL_LATENESS: Final = Metric(
    "delayqueue_call_lateness_seconds",
    "From due, or pushed if that was later, to called, of the first calls of jobs with a call.",
    bounds=LATENESS_S,
)
HANDLING: Final = Metric(
    "delayqueue_handling_seconds", "From delivered to finished or deleted.", bounds=HANDLING_S
)
WAITING_POLLS: Final = Metric(
    "delayqueue_waiting_polls", "Polls that wait for a job, or for its end."
)
CONNECTIONS: Final = Metric("delayqueue_connections", "Connections of clients.")
UNANSWERED_BYTES: Final = Metric(
    "delayqueue_unanswered_bytes", "Requests of more than 16 KiB that are not answered yet."
)
TICK_AGE: Final = Metric(
    "delayqueue_tick_age_seconds", "Time since the last tick, of the bucket whose one is oldest."
)
BUCKETS_AWAY: Final = Metric(
    "delayqueue_buckets_away",
    "Buckets whose store does not answer or takes nothing in; /readyz names them.",
)
STORE_WRITABLE: Final = Metric(
    "delayqueue_store_writable",
    "Whether the store takes new jobs; 0 while it is away, read-only, full, or has too few replicas.",
)
STORE_EMPTIED: Final = Metric(
    "delayqueue_store_emptied",
    "Whether the store, or a part of it, was emptied or replaced, and nobody has said that it is new.",
)
# what the times of an event mean
TIMES: Final = {
    "due": READY_LATENESS,
    "delivered": DELIVERY_LATENESS,
    "finished": HANDLING,
    "deleted": HANDLING,
}
COUNTERS: Final = (
    REQUESTS,
    REQUEST_WARNINGS,
    REFUSED,
    JOB_EVENTS,
    SUBSCRIBER_CALLS,
    REPAIRS,
    SCRIPT_ERRORS,
)
HISTOGRAMS: Final = (SCRIPT_SECONDS, READY_LATENESS, DELIVERY_LATENESS, CALL_LATENESS, HANDLING)
GAUGES: Final = (
    WAITING_POLLS,
    CONNECTIONS,
    UNANSWERED_BYTES,
    TICK_AGE,
    BUCKETS_AWAY,
    STORE_WRITABLE,
    STORE_EMPTIED,
)

OTHER: Final = "other"  # for the topics that are not named

# By name: rows of [labels, number], for histograms [labels, counts of the buckets, sum of seconds]. Can be sent as
# JSON.
Snapshot = dict[str, list[list[Any]]]


class Histogram:
    """How many of the observed times fell into each bucket; the last one has no upper end."""

    __slots__ = ("_bounds", "counts", "sum_s", "worst_s")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum_s = 0.0
        self.worst_s = 0.0  # since it was taken last

    def observe(self, seconds: float) -> None:
        """Count one observation."""
        self.counts[bisect_left(self._bounds, seconds)] += 1
        self.sum_s += seconds
        if seconds > self.worst_s:  # noqa: PLR1730  # max() is a call, for each job
            self.worst_s = seconds

    def take_worst_s(self) -> float:
        """The longest time since the last call; 0 = there was none."""
        worst_s, self.worst_s = self.worst_s, 0.0
        return worst_s


class Metrics:
    """The figures of one process since its start."""

    def __init__(self) -> None:
        self._counters: dict[Metric, Counter[tuple[object, ...]]] = {
            metric: Counter({(label,): 0 for label in metric.known}) for metric in COUNTERS
        }
        self._histograms: dict[Metric, dict[tuple[str, ...], Histogram]] = {
            metric: {} if metric.labels else {(): Histogram(metric.bounds)} for metric in HISTOGRAMS
        }
        self._gauges: dict[Metric, Callable[[], float | None]] = {}
        self.most_topics = math.inf  # how many topics are counted by name
        self.topic_counters: TopicCounters | None = None  # only if a history is kept
        self.calls: CallCounters | None = None  # only if this process makes the calls of jobs
        self._times = {event: self.histogram(metric) for event, metric in TIMES.items()}
        self._topics: set[str] = set()
        self._events: Counter[str] = Counter()

    def counter(self, metric: Metric) -> Counter[tuple[object, ...]]:
        """A counter by the values of its labels, in order, for what counts often."""
        return self._counters[metric]

    def count(self, metric: Metric, *labels: object, by: int = 1) -> None:
        """Add `by` to a counter; `labels` are the values of its labels, in order."""
        self._counters[metric][labels] += by

    def count_event(
        self, event: str, topic: str, number: int, times_ms: Sequence[int] = ()
    ) -> None:
        """Count an event of `number` jobs of a topic; the times say how late they were, or how long they took.

        The first topics are counted by name, all others as one.
        """
        if self.topic_counters:
            self.topic_counters.count(event, topic, number, times_ms)
        for time_ms in times_ms:
            self._times[event].observe(time_ms / 1000)
        if topic not in self._topics:
            if len(self._topics) < self.most_topics:
                self._topics.add(topic)
            else:
                topic = OTHER
        self._counters[JOB_EVENTS][event, topic] += number
        self._events[event] += number

    def events(self, event: str) -> int:
        """How many jobs of all topics had the event."""
        return self._events[event]

    def histogram(self, metric: Metric, *labels: str) -> Histogram:
        """The histogram of a metric; `labels` are the values of its labels, in order.

        One with labels is shown from its first time on.
        """
        return self._histograms[metric].setdefault(labels, Histogram(metric.bounds))

    def show(self, gauge: Metric, read: Callable[[], float | None]) -> None:
        """Call `read` for this gauge whenever the figures are read; None = nothing to show."""
        self._gauges[gauge] = read

    def snapshot(self) -> Snapshot:
        """All figures as they are now."""
        figures: Snapshot = {}
        for metric, counter in self._counters.items():
            figures[metric.name] = [[list(labels), n] for labels, n in counter.items()]
        for metric, histograms in self._histograms.items():
            figures[metric.name] = [
                [list(labels), list(each.counts), each.sum_s]
                for labels, each in histograms.items()
                if not labels or any(each.counts)
            ]
        for metric, read in self._gauges.items():
            value = read()
            figures[metric.name] = [] if value is None else [[[], value]]
        return figures
