"""What the endpoints on subscribers take."""

from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from delayqueue import subscriber as rules
from delayqueue.errors import BadValue, Invalid, Text
from delayqueue.job import IfExists
from delayqueue.retry import duration_ms
from delayqueue.subscriber import MAX_CONCURRENCY, MAX_ORDER, Subscriber
from delayqueue.web.fields import (
    WHITE_SPACE,
    check_if_exists,
    check_pushed_topic,
    check_range,
    check_topic,
)
from delayqueue.web.requests import Number, Request, RetryRequest, with_inner

T = TypeVar("T")
V = TypeVar("V")


def by_rule(field: str, value: V, check: Callable[[V], T]) -> T:
    """What a check of the ground makes of the value; its BadValue becomes Invalid, which names the field."""
    try:
        return check(value)
    except BadValue as error:
        raise Invalid(Text(f"{field} {error.text.zh}", f"{field}: {error.text.en}")) from None


class NameRequest(Request):
    """The name of a subscriber or a schedule."""

    name: str | None = None

    def checked_name(self) -> str:
        """The name without its outer white space."""
        return by_rule("name", (self.name or "").strip(WHITE_SPACE), rules.check_name)


class SubscribeRequest(NameRequest):
    """A subscriber to register."""

    topic: str | None = None
    order: int | None = None
    url: str | None = None
    timeout: Number | None = None
    retry: RetryRequest | None = None
    concurrency: int | None = None
    secret: str | None = None
    expect: str | None = None
    on_failure: str | None = None
    payload: str | None = None
    if_exists: str | None = None

    @property
    def is_doubtful(self) -> bool:
        """Whether there is an unknown field, in its retry schedule, too."""
        return bool(self.unknown)

    @property
    def unknown(self) -> Collection[str]:
        """Those of its retry schedule, too."""
        return with_inner(self.__pydantic_extra__, "retry", self.retry)

    def subscriber(self) -> Subscriber:
        """The subscriber. Invalid names the field and what it may be."""
        given: dict[str, object] = {}
        if self.order is not None:
            given["order"] = check_range("order", self.order, -MAX_ORDER, MAX_ORDER)
        if self.timeout is not None:
            timeout_ms = by_rule("timeout", self.timeout, duration_ms)
            given["timeout_ms"] = by_rule("timeout", timeout_ms, rules.check_timeout)
        if self.retry is not None:
            given["retry_ms"] = self.retry.schedule()
        if self.concurrency is not None:
            given["concurrency"] = check_range("concurrency", self.concurrency, 1, MAX_CONCURRENCY)
        if self.secret is not None:
            given["secret"] = by_rule("secret", self.secret, rules.check_secret)
        given |= self._of_answers()
        return Subscriber(
            name=self.checked_name(),
            topic=check_pushed_topic(self.topic),
            url=by_rule("url", self.url or "", rules.check_url),
            **given,  # type: ignore[arg-type]  # each was checked by its own rule
        )

    def _of_answers(self) -> dict[str, object]:
        """What is sent, and what its answers mean."""
        given: dict[str, object] = {}
        if self.expect is not None:
            given["expect"] = by_rule("expect", self.expect, rules.check_expect)
        if self.on_failure is not None:
            given["on_failure"] = by_rule("on_failure", self.on_failure, rules.check_on_failure)
        if self.payload is not None:
            given["payload"] = by_rule("payload", self.payload, rules.check_payload)
        return given

    def checked_if_exists(self) -> IfExists:
        """What to do with another subscriber of the name."""
        return IfExists.FAIL if self.if_exists is None else check_if_exists(self.if_exists)


class SubscribersRequest(Request):
    """The subscribers of one topic, or all."""

    topic: str | None = None

    def reach(self) -> Iterable[str] | None:
        """Its topic, where it has one."""
        return None if self.topic is None else (check_topic(self.topic),)

    def checked_topic(self) -> str:
        """The topic, "" = all."""
        return "" if self.topic is None else check_topic(self.topic)
