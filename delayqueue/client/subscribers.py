"""Subscribers as a Python program sees them, and the verbs on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from delayqueue.client.calls import Call, verb
from delayqueue.client.fields import given, in_seconds, nothing, read
from delayqueue.client.jobs import retry_request

if TYPE_CHECKING:
    from delayqueue.client.jobs import OnConflict, Retry, Seconds


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Whom the server calls with a topic's jobs: a `url`, or its Python callable `handler`.

    `timeout` and `retry` are seconds; `signed`: it has a secret; `declared`: it stands in a config file. `expect`: what
    its answer must be, "" = any.
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


class SubscriberVerbs:
    """From /subscribe to /subscribers."""

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
    def subscribers(self, topic: str | None = None) -> Call[list[Subscriber]]:
        """Who is called with the jobs of a topic, or of all, in order."""
        return Call(
            "/subscribers",
            given(topic=topic),
            lambda data: [_subscriber(one) for one in data],
            repeatable=True,
        )


def _subscriber(data: dict[str, Any]) -> Subscriber:
    return read(Subscriber, data | {"retry": tuple(data["retry"])})
