"""The answer of /metrics: the figures of all workers and of the store, for Prometheus."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.exposition import choose_encoder
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from delayqueue import __version__
from delayqueue.domain.job import LIVE_STATES
from delayqueue.domain.text import escaped
from delayqueue.engine.workers import WorkerCounts
from delayqueue.metrics import COUNTERS, GAUGES, HISTOGRAMS, JOB_EVENTS, OTHER, Metric, Snapshot
from delayqueue.store.census import SOON_S, TopicView
from delayqueue.store.types import Health
from delayqueue.tasks import by_turns

# shown as 0 for each named topic, and for the others, so that the first one is an increase: alerts count those
FROM_THE_START: Final = ("buried", "delivered", "lost", "timed_out")
NOT_COUNTED: Final[Mapping[str, Sequence[int]]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """The first topics by name, and all others together, so that there are never too many."""

    named: Sequence[TopicView]
    others: TopicView | None
    count: int
    due_soon: Mapping[str, Sequence[int]]  # of the named ones, within each of SOON_S

    @classmethod
    async def of(
        cls,
        topics: Sequence[TopicView],
        most: int,
        due_soon: Mapping[str, Sequence[int]] = NOT_COUNTED,
    ) -> Self:
        """The figures of these topics; `most` are named. A paused one of the others is not late."""
        others = TopicView(OTHER)
        async for view in by_turns(topics[most:]):
            is_paused = view.paused_until_ms is not None
            others.add(replace(view, oldest_age_ms=None) if is_paused else view)
        all_others = others if len(topics) > most else None
        return cls(topics[:most], all_others, len(topics), due_soon)

    @property
    def all(self) -> Sequence[TopicView]:
        """The named ones, and the others as one if there are any."""
        return [*self.named, self.others] if self.others else self.named


class StoreFigures(NamedTuple):
    """The store's figures; the same from every server."""

    topics: TopicFigures
    health: Health
    subscribers: int
    schedules: int
    workers: WorkerCounts


class Figures(Collector):
    """All figures. `store` is None if the store does not answer."""

    def __init__(self, workers: dict[str, Snapshot], store: StoreFigures | None) -> None:
        self._workers = workers
        self._store = store

    def collect(self) -> Iterator[Family]:
        """The metrics, one family for each name."""
        yield _gauge(
            "delayqueue_build_info", "Version of the server.", {(__version__,): 1}, "version"
        )
        for metric in COUNTERS:
            family = CounterMetricFamily(metric.name, metric.help, labels=_labels(metric))
            yield self._simple(family, metric)
        yield from self._of_processes()
        for metric in GAUGES:
            yield self._simple(
                GaugeMetricFamily(metric.name, metric.help, labels=_labels(metric)), metric
            )
        for metric in HISTOGRAMS:
            yield self._histogram(metric)
        store = self._store
        yield _gauge("delayqueue_store_up", "Whether the store answers.", store is not None)
        if store is not None:
            yield from _of_health(store.health)
            yield from _of_topics(store.topics)
            yield _gauge("delayqueue_subscribers", "Registered subscribers.", store.subscribers)
            yield _gauge("delayqueue_schedules", "Registered schedules.", store.schedules)
            yield _of_workers(store.workers)

    def _simple(
        self, family: CounterMetricFamily | GaugeMetricFamily, metric: Metric
    ) -> CounterMetricFamily | GaugeMetricFamily:
        for worker, figures in self._workers.items():
            rows = figures.get(metric.name, ())
            for labels, value in rows:
                family.add_metric([worker, *map(str, labels)], value)
            if metric is JOB_EVENTS:
                for labels in self._unseen(rows):
                    family.add_metric([worker, *labels], 0)
        return family

    def _unseen(self, rows: Sequence[Sequence[Any]]) -> Iterator[tuple[str, str]]:
        """Counters to show as 0, because they have not happened to a topic so far."""
        seen = {tuple(labels) for labels, _ in rows}
        topics = {topic for _, topic in seen if topic == OTHER}
        if self._store:
            topics.update(view.topic for view in self._store.topics.all)
        for topic in sorted(topics):
            for event in FROM_THE_START:
                if (event, topic) not in seen:
                    yield event, topic

    def _of_processes(self) -> Iterator[Family]:
        for own in ProcessCollector(registry=None).collect():
            family = Family(own.name, own.documentation, own.type)
            for worker, figures in self._workers.items():
                for _, value in figures.get(own.name, ()):
                    family.add_sample(own.samples[0].name, {"worker": worker}, value)
            yield family

    def _histogram(self, metric: Metric) -> HistogramMetricFamily:
        family = HistogramMetricFamily(metric.name, metric.help, labels=_labels(metric))
        ends = [*map(str, map(float, metric.bounds)), "+Inf"]
        for worker, figures in self._workers.items():
            for labels, counts, sum_s in figures.get(metric.name, ()):
                buckets = list(zip(ends, accumulate(counts), strict=True))
                family.add_metric([worker, *labels], buckets, sum_s)
        return family


def _labels(metric: Metric) -> list[str]:
    return ["worker", *metric.labels]


def _gauge(
    name: str, help_text: str, values: dict[tuple[str, ...], float] | float, *labels: str
) -> GaugeMetricFamily:
    """A gauge with a value for each combination of labels, or one without labels."""
    family = GaugeMetricFamily(name, help_text, labels=labels)
    for each, value in values.items() if isinstance(values, dict) else [((), values)]:
        family.add_metric(each, value)
    return family


def _of_health(health: Health) -> Iterator[Family]:
    yield _gauge(
        "delayqueue_store_memory_bytes", "Memory that the store uses.", health.memory_bytes
    )
    yield _gauge(
        "delayqueue_store_memory_limit_bytes",
        "The store's maxmemory, 0 = none.",
        health.memory_limit_bytes,
    )
    yield _gauge(
        "delayqueue_store_durable",
        "Whether the store writes an append-only file that is there, its last write succeeded, it never drops a job "
        "for room, and replicas follow as configured.",
        health.durable,
    )


def _of_workers(workers: WorkerCounts) -> Family:
    return _gauge(
        "delayqueue_workers",
        "Workers that told their names: alive, and those whose connection broke with jobs in hand.",
        {("alive",): workers.alive, ("gone",): workers.gone},
        "state",
    )


def _of_topics(topics: TopicFigures) -> Iterator[Family]:
    yield _gauge("delayqueue_topics", "Number of topics.", topics.count)
    yield _gauge(
        "delayqueue_topic_jobs",
        "Jobs of a topic in a state.",
        {(each.topic, state): getattr(each, state) for each in topics.all for state in LIVE_STATES},
        "topic",
        "state",
    )
    yield _gauge(
        "delayqueue_topic_oldest_ready_seconds",
        "How long the oldest ready job of a topic has been due, and in the queue.",
        {
            (each.topic,): each.oldest_age_ms / 1000
            for each in topics.all
            if each.oldest_age_ms is not None
        },
        "topic",
    )
    yield _gauge(
        "delayqueue_due_soon",
        "Delayed jobs of a topic that fall due within that many seconds.",
        {
            (topic, str(within_s)): count
            for topic, counts in topics.due_soon.items()
            for within_s, count in zip(SOON_S, counts, strict=True)
        },
        "topic",
        "within",
    )
    yield _gauge(
        "delayqueue_topic_max_jobs",
        "How many jobs a topic may have, if that is limited, and what a push to a full one does.",
        {
            (each.topic, each.limit.when_full or "refuse"): each.limit.max_jobs
            for each in topics.named
            if each.limit is not None and each.limit.max_jobs is not None
        },
        "topic",
        "when_full",
    )
    yield _gauge(
        "delayqueue_topic_paused",
        "Whether the topic is paused.",
        {(each.topic,): int(each.paused_until_ms is not None) for each in topics.named},
        "topic",
    )


def process_figures() -> Snapshot:
    """Processor time, memory and open files of this process."""
    families = ProcessCollector(registry=None).collect()
    return {family.name: [[[], family.samples[0].value]] for family in families}


def exposition(figures: Figures, accepted: str) -> tuple[bytes, str]:
    """The text that Prometheus reads, and its Content-Type; `accepted` is the request's Accept header."""
    try:
        encode, content_type = choose_encoder(accepted)
    except (TypeError, ValueError):  # a version that is no number
        encode, content_type = choose_encoder("")
    # a name with control characters must not reach the terminal of who looks at the text
    return escaped(encode(figures).decode(), r"\\").encode(), content_type
