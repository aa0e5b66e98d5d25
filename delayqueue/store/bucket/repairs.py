"""Counts the damage that verbs mend, from what their scripts answer. A script's head describes its answer."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from delayqueue.domain import damage
from delayqueue.metrics import REPAIRS, Metrics


def _tick(metrics: Metrics, results: Sequence[Any]) -> None:
    if results[3]:
        metrics.count(REPAIRS, "set_aside", by=results[3])


def _sweep(metrics: Metrics, results: Sequence[Any]) -> None:
    if results[1]:
        metrics.count(REPAIRS, "ghosts", by=results[1])


def _inspect(metrics: Metrics, results: Sequence[Any]) -> None:
    findings = results[1]
    mended = zip(findings[::4], findings[3::4], strict=True)
    kinds = Counter(kind.decode() for kind, is_mended in mended if is_mended == b"1")
    kinds.pop(damage.LOST, None)  # an event of its job
    for kind, number in kinds.items():
        metrics.count(REPAIRS, kind, by=number)


# by verb: what counts the damage that a call with these results has mended
REPAIRS_OF: Final[Mapping[str, Callable[[Metrics, Sequence[Any]], None]]] = {
    "tick": _tick,
    "sweep": _sweep,
    "inspect": _inspect,
}
