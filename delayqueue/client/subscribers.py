"""Subscribers as a Python program sees them, and the verbs on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from delayqueue.client.calls import Call, verb
from delayqueue.client.fields import given, in_seconds, nothing, read
from delayqueue.client.jobs import OnConflict, Retry, Seconds, retry_request

LONGEST_TRIAL_S: Final = 30  # the server waits no longer for an answer


@dataclass(frozen=True, slots=True)
class FailedCall:
    """A call that failed: when, with which job, the beginning of what was said."""

    at: float
    id: str
    message: str


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of a subscriber within 24 hours, seconds that one took on average, the last failures, newest first."""

    succeeded: int
    failed: int
    took: float | None
    failures: tuple[FailedCall, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of a call with a made-up job: the HTTP status, 0 where no answer came, seconds, what was said."""

    succeeded: bool
    status: int
    took: float
    message: str


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Whom the server calls with a topic's jobs: a `url`, or its Python callable `handler`.

    `timeout` and `retry` are seconds; `signed`: it has a secret; `declared`: it stands in a config file. `expect`: what
    its answer must be, "" = any. `paused`: since when, None = it is called; `calls`: where they were asked for.
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
    paused: float | None = None
    calls: Calls | None = None


class SubscriberVerbs:
    """From /subscribe to /try-subscriber."""

    @verb
    def subscribe(  # noqa: PLR0913  # the fields of a subscriber
        self,
        name: str,
        topic: str,
        url: str,
        *,
        order: int | None = None,
        timeout: Seconds | None = None,
        retry: Retry | None = None,
        concurrency: int | None = None,
        secret: str | None = None,
        expect: str | None = None,
        on_failure: Literal["bury", "continue"] | None = None,
        payload: Literal["body", "event"] | None = None,
        if_exists: OnConflict | None = None,
    ) -> Call[None]:
        """Have `url` called with the due jobs of a topic.

        Raises JobExists if another subscriber has the name, unless `if_exists` is "replace" or "keep".
        """
        request = given(
            name=name,
            topic=topic,
            url=url,
            order=order,
            timeout=in_seconds(timeout),
            retry=None if retry is None else retry_request(retry),
            concurrency=concurrency,
            secret=secret,
            expect=expect,
            on_failure=on_failure,
            payload=payload,
            if_exists=if_exists,
        )
        return Call("/subscribe", request, nothing, repeatable=True)

    @verb
    def unsubscribe(self, name: str) -> Call[None]:
        """Have a subscriber called no more. Raises NoSuchJob if nobody has the name."""
        return Call("/unsubscribe", {"name": name}, nothing, repeatable=True, gone_is_done=True)

    @verb
    def subscribers(
        self, topic: str | None = None, *, calls: bool | None = None
    ) -> Call[list[Subscriber]]:
        """Who is called with the jobs of a topic, or of all, in order; with `calls` how that went."""
        return Call(
            "/subscribers",
            given(topic=topic, calls=calls),
            lambda data: [_subscriber(one) for one in data],
            repeatable=True,
        )

    @verb
    def pause_subscriber(self, name: str) -> Call[None]:
        """Hold the calls of a subscriber. Raises NoSuchJob if nobody has the name."""
        return Call("/pause-subscriber", {"name": name}, nothing, repeatable=True)

    @verb
    def resume_subscriber(self, name: str) -> Call[None]:
        """Let the calls of a subscriber go on. Raises NoSuchJob if nobody has the name."""
        return Call("/resume-subscriber", {"name": name}, nothing, repeatable=True)

    @verb
    def try_subscriber(self, name: str, body: str = "") -> Call[Trial]:
        """Call a webhook with a made-up job.

        Raises NoSuchJob if nobody has the name, WrongState if it is a Python handler.
        """
        request = {"name": name, "body": body}
        return Call(
            "/try-subscriber", request, lambda data: read(Trial, data), wait_s=LONGEST_TRIAL_S
        )


def _subscriber(data: dict[str, Any]) -> Subscriber:
    calls = data.get("calls")
    return read(
        Subscriber, data | {"retry": tuple(data["retry"]), "calls": calls and _calls(calls)}
    )


def _calls(data: dict[str, Any]) -> Calls:
    return read(
        Calls, data | {"failures": tuple(read(FailedCall, one) for one in data["failures"])}
    )
