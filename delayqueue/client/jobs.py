"""The fields of requests, as users give them and as they are sent.

Times are unix seconds, durations are seconds, both with fractions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final, Literal, TypeAlias

from delayqueue.client.payload import body_of
from delayqueue.client.several import Collected, several
from delayqueue.client.times import distance, seconds, time_left, unix
from delayqueue.domain.job import IfExists, State
from delayqueue.domain.push_rules import in_group, stripped

# a preset's name, the delays after each failure, or {"max": 5, "base": "2s", "factor": 3, "cap": "1m", "jitter": 0.1}
Retry: TypeAlias = str | Collected[float | str | timedelta] | Mapping[str, Any]
# a URL, or {"url": "https://…", "headers": {…}, "timeout": "10s", "expect": "success", "give_up": True}
CallTo: TypeAlias = str | Mapping[str, Any]
# a name, or {"name": "web1:4711", "version": "2.4", "host": "web1", "pid": 4711, "concurrency": 10}
WorkerName: TypeAlias = str | Mapping[str, Any]
# what to do if the id or name already exists
OnConflict: TypeAlias = IfExists | Literal["replace", "keep", "fail"]
AnyState: TypeAlias = (
    State
    | Literal[
        "delayed", "ready", "reserved", "buried", "finished", "cancelled", "expired", "dropped"
    ]
)

DEFAULT_TTR_S = 60


def retry_request(retry: Retry) -> dict[str, Any]:
    """A retry schedule in the form that the server takes."""
    if isinstance(retry, str):
        return {"preset": retry}
    if not isinstance(retry, Mapping):
        return {"delays": _delays("retry", retry)}
    lists = {name: _delays(name, retry[name]) for name in retry.keys() & {"delays"}}
    lengths = {name: _delay(retry[name]) for name in retry.keys() & {"base", "cap"}}
    return dict(retry) | lists | lengths


def _delays(name: str, given: Collected[float | str | timedelta]) -> list[float | str]:
    return list(map(_delay, several(name, given)))


def _delay(given: float | str | timedelta) -> float | str:
    return given.total_seconds() if isinstance(given, timedelta) else given


def call_request(call: CallTo) -> dict[str, Any]:
    """A job's call in the form that the server takes."""
    return {"url": call} if isinstance(call, str) else given(**call)


def worker_request(worker: WorkerName) -> Mapping[str, Any]:
    """The worker that polls, in the form that the server takes."""
    return {"name": worker} if isinstance(worker, str) else worker


# how a field is sent, if not as it is given
SENT: Final[Mapping[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("fallback", "timeout", "ttr", "max_wait", "retain", "expire"), seconds),
    **dict.fromkeys(("every", "step", "seconds"), seconds),
    **dict.fromkeys(("due", "start", "end", "after", "before"), unix),
    "delay": time_left,
    "by": distance,
    "retry": retry_request,
    "call": call_request,
    "worker": worker_request,
    "body": body_of,
}


def given(**fields: Any) -> dict[str, Any]:
    """The fields of a request, without those that are None: the server has the defaults of these.

    They may be the locals() of a verb that has an argument for each.
    """
    return {
        name: SENT[name](value) if name in SENT else value
        for name, value in fields.items()
        if value is not None and name != "self"
    }


def new_id(group: object = None) -> str:
    """A unique id; in a group, one that is in its bucket, however many there are."""
    made = os.urandom(16).hex()  # a UUID takes four times as long
    return in_group(stripped(group), made) if isinstance(group, str) else made
