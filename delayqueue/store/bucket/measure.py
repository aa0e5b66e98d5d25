"""What the scripts' answers tell about jobs, for the metrics. What an answer holds stands in its script's head."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from delayqueue.errors import Code
from delayqueue.metrics import (
    DELIVERY_LATENESS,
    HANDLING,
    JOB_EVENTS,
    READY_LATENESS,
    REPAIRS,
    Metrics,
)


def count_answer(metrics: Metrics, verb: str, answer: Any) -> None:
    """Count what a call of `verb` did."""
    count = _COUNTS.get(verb)
    if count is not None:
        count(metrics, answer)


def _event(metrics: Metrics, event: str, number: int) -> None:
    if number:
        metrics.count(JOB_EVENTS, event, by=number)


def _push(metrics: Metrics, answer: Any) -> None:
    _event(metrics, "pushed", answer[1].count(Code.OK))


def _pop(metrics: Metrics, answer: Any) -> None:
    _, found, late_ms, _ = answer
    _event(metrics, "delivered", sum(len(jobs) for jobs in found) // 3)
    for each in late_ms:
        metrics.observe(DELIVERY_LATENESS, each / 1000)


def _reserve(metrics: Metrics, answer: Any) -> None:
    _event(metrics, "delivered", sum(code == Code.OK for code, *_ in answer))


def _ended(event: str) -> Callable[[Metrics, Any], None]:
    def count(metrics: Metrics, answer: Any) -> None:
        _, handled_ms, _ = answer
        _event(metrics, event, len(handled_ms))
        for each in handled_ms:
            if each >= 0:
                metrics.observe(HANDLING, each / 1000)

    return count


def _returned(metrics: Metrics, answer: Any) -> None:
    _event(metrics, "returned", answer[0])


def _bury(metrics: Metrics, answer: Any) -> None:
    _event(metrics, "buried", answer[0].count(Code.OK))


def _release(metrics: Metrics, answer: Any) -> None:
    codes, dues, *_ = answer
    ends = Counter(due for code, due in zip(codes, dues, strict=True) if code == Code.OK)
    _event(metrics, "released", ends.total())
    _event(metrics, "buried", ends[-1])
    _event(metrics, "expired", ends[-2])


def _kick(metrics: Metrics, answer: Any) -> None:
    _event(metrics, "kicked", answer[0].count(Code.OK))


def _cancel(metrics: Metrics, answer: Any) -> None:
    _event(metrics, "cancelled", answer[1])


def _purge(metrics: Metrics, answer: Any) -> None:
    _event(metrics, "purged", answer[0])


def _take(metrics: Metrics, answer: Any) -> None:
    _event(metrics, "taken", len(answer[2]) // 3)


def _tick(metrics: Metrics, answer: Sequence[Any]) -> None:
    _, _, timed_out, buried, expired, set_aside, late_ms, _ = answer
    _event(metrics, "timed_out", timed_out)
    _event(metrics, "buried", buried)
    _event(metrics, "expired", expired)
    if set_aside:
        metrics.count(REPAIRS, "set_aside", by=set_aside)
    for each in late_ms:
        metrics.observe(READY_LATENESS, each / 1000)


def _sweep(metrics: Metrics, answer: Any) -> None:
    if answer[1]:
        metrics.count(REPAIRS, "ghosts", by=answer[1])
    _event(metrics, "buried_expired", answer[3])


def _inspect(metrics: Metrics, answer: Any) -> None:
    findings = answer[2]
    mended = zip(findings[::4], findings[3::4], strict=True)
    for kind, number in Counter(kind for kind, is_mended in mended if is_mended == b"1").items():
        metrics.count(REPAIRS, kind.decode(), by=number)


_COUNTS: Final[dict[str, Callable[[Metrics, Any], None]]] = {
    "push": _push,
    "pop": _pop,
    "reserve": _reserve,
    "requeue": _returned,
    "restore": _returned,
    "finish": _ended("finished"),
    "delete": _ended("deleted"),
    "bury": _bury,
    "release": _release,
    "postpone": _release,
    "kick": _kick,
    "kick_tag": _kick,
    "cancel": _cancel,
    "purge": _purge,
    "take": _take,
    "tick": _tick,
    "sweep": _sweep,
    "inspect": _inspect,
}
