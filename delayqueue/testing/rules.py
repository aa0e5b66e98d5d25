"""Refusals of the queue in memory: by the server's rules, and in its words."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from delayqueue.domain.job import LONG_DELAY_S, MAX_BATCH, MAX_DELAY_S, MAX_TOPIC_BYTES, State
from delayqueue.domain.push_fields import RULES, checked
from delayqueue.domain.push_rules import Rule, job_id, name, tag, within
from delayqueue.errors import Invalid, TooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_BODY_BYTES: Final = 2**20  # of a server whose settings do not say otherwise


def pushed(request: Mapping[str, Any]) -> dict[str, Any]:
    """A push as the server understands it. Raises Invalid or TooLarge."""
    try:
        found = checked(request)
    except (TypeError, ValueError) as error:
        raise _invalid(str(error)) from None
    return {"body": ""} | _within_limits(found)


def check_count(jobs: Sequence[object]) -> None:
    """Raises Invalid unless so many jobs can be pushed in a call."""
    if not jobs:
        raise _invalid("an array of jobs must not be empty")
    if len(jobs) > MAX_BATCH:
        raise _invalid(f"{len(jobs)} jobs: at most {MAX_BATCH} in a call")


def asked(path: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """The request of another verb as the server understands it. Raises Invalid or TooLarge."""
    try:
        found = {
            field: OTHERS[field](field, value) if field in OTHERS else value
            for field, value in request.items()
            if value is not None
        }
        if path == "/reschedule":
            _check_times(found)
    except (TypeError, ValueError) as error:
        raise _invalid(str(error)) from None
    return _within_limits(found)


def _check_times(found: Mapping[str, Any]) -> None:
    """Raises ValueError unless it has one new time, a priority, or both."""
    if "by" in found and found.keys() & {"delay", "due"}:
        raise ValueError("by: goes without delay and due, which replace it")
    if not found.keys() & {"delay", "due", "by", "priority"}:
        raise ValueError("give one of delay, due, by, or a priority")
    if found.get("delay") and "due" in found:
        raise ValueError("delay and due exclude each other")


def _invalid(text: str) -> Invalid:
    return Invalid.of(text, text)


def _within_limits(request: dict[str, Any]) -> dict[str, Any]:
    if (delay_s := request.get("delay", 0)) > LONG_DELAY_S:
        raise _invalid(f"delay {delay_s:.0f}: more than a year; send a unix time as due")
    size = len(request.get("body", "").encode())
    if size > MAX_BODY_BYTES:
        text = f"body: {size} bytes, at most {MAX_BODY_BYTES}"
        raise TooLarge.of(text, text)
    return request


def _ids(field: str, value: Any) -> list[str]:
    if not 1 <= len(value) <= MAX_BATCH:
        raise ValueError(f"{field}: must be 1 to {MAX_BATCH}, not {len(value)}")
    return [job_id(f"{field}.{place}", each) for place, each in enumerate(value)]


def _state(field: str, value: Any) -> str:
    states = (State.BURIED, State.DELAYED)
    if value not in states:
        raise ValueError(f"{field} {str(value)!r}: must be one of {', '.join(states)}")
    return str(value)


OTHERS: Final[Mapping[str, Rule]] = {
    **{field: RULES[field] for field in ("id", "delay", "due", "priority", "body")},
    "ids": _ids,
    "tag": tag,
    "state": _state,
    "topic": partial(name, limit_bytes=MAX_TOPIC_BYTES),
    "by": partial(
        within, least=-MAX_DELAY_S, most=MAX_DELAY_S, must="must be -2^31 to 2^31 seconds"
    ),
    "count": partial(within, least=1, most=MAX_BATCH, must="must be {least} to {most}"),
}
