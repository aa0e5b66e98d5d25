"""Subscribers, and how calls of them went."""

from dataclasses import field

from delayqueue.answers.answer import answer, omittable


@answer
class FailedCall:
    """A failed call of a subscriber: when, with which job, and the start of the error message."""

    at: float
    id: str
    message: str


@answer
class CallCounts:
    """The calls of a subscriber within 24 hours, their average length in seconds, the last failures."""

    succeeded: int
    failed: int
    took: float | None
    failures: tuple[FailedCall, ...]


@answer
class Trial:
    """The outcome of a call with a made-up job: the HTTP status (0 = no answer), and the answer."""

    succeeded: bool
    status: int
    took: float
    message: str


@answer
class Subscriber:
    """A webhook for a topic's jobs. `declared`: from a config file.

    `headers` has names; the values stay in the server. `paused`: since when, in unix seconds, null = not paused.
    `handler` is "", unless a server of an earlier version has put a Python callable there, which only such a one calls.
    """

    name: str
    topic: str
    order: int
    url: str
    handler: str
    timeout: float
    retry: tuple[float, ...]
    concurrency: int
    signed: bool
    declared: bool
    expect: str = ""
    on_failure: str = "bury"
    payload: str = "body"
    method: str = "POST"
    headers: dict[str, str] = field(default_factory=dict[str, str])
    paused: float | None = None
    calls: CallCounts | None = omittable(default=None)  # only if asked for


@answer
class SubscriberPage:
    """Some of the subscribers; `cursor` leads to the next page, "" on the last one."""

    subscribers: list[Subscriber]
    cursor: str
