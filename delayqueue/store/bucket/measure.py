"""Feeds the metrics from the scripts' answers. A script's head describes its answer."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from delayqueue.metrics import (
    DELIVERY_LATENESS,
    HANDLING,
    READY_LATENESS,
    REPAIRS,
    Metric,
    Metrics,
)
from delayqueue.store.bucket.record import text

# what the times of an event mean
_TIMES: Final[dict[str, Metric]] = {
    "due": READY_LATENESS,
    "delivered": DELIVERY_LATENESS,
    "finished": HANDLING,
    "deleted": HANDLING,
}


def count_events(metrics: Metrics, events: Sequence[Any]) -> None:
    """Count a call's events (tell in _call.lua): event, topic, how many jobs, ms of some of them or None, ..."""
    for at in range(0, len(events), 4):
        raw_event, raw_topic, number, times_ms = events[at : at + 4]
        event = raw_event.decode()
        metrics.count_event(event, text(raw_topic), number, times_ms or ())
        for each in times_ms or ():
            metrics.observe(_TIMES[event], each / 1000)


def count_repairs(metrics: Metrics, verb: str, results: Sequence[Any]) -> None:
    """Count the damage that a call of `verb` has repaired."""
    count = _REPAIRS.get(verb)
    if count is not None:
        count(metrics, results)


def _tick(metrics: Metrics, results: Sequence[Any]) -> None:
    if results[3]:
        metrics.count(REPAIRS, "set_aside", by=results[3])


def _sweep(metrics: Metrics, results: Sequence[Any]) -> None:
    if results[1]:
        metrics.count(REPAIRS, "ghosts", by=results[1])


def _inspect(metrics: Metrics, results: Sequence[Any]) -> None:
    findings = results[1]
    mended = zip(findings[::4], findings[3::4], strict=True)
    for kind, number in Counter(kind for kind, is_mended in mended if is_mended == b"1").items():
        metrics.count(REPAIRS, kind.decode(), by=number)


_REPAIRS: Final[dict[str, Callable[[Metrics, Sequence[Any]], None]]] = {
    "tick": _tick,
    "sweep": _sweep,
    "inspect": _inspect,
}
