"""What the endpoints on topics, tags and ranges of due times take."""

from collections.abc import Callable, Iterable

from delayqueue import limit as rules
from delayqueue.errors import Invalid, Text
from delayqueue.job import MAX_FORECAST_STEPS, State
from delayqueue.store.types import Listing, Range
from delayqueue.web.fields import (
    MAX_DUE_S,
    check_due,
    check_some_seconds,
    check_state,
    check_tag,
    check_topic,
)
from delayqueue.web.requests import Number, Request
from delayqueue.web.subscriber_requests import by_rule

PURGE_STATES = ("delayed", "ready", "reserved", "buried", "ended")


class TopicRequest(Request):
    """One topic."""

    topic: str | None = None

    def reach(self) -> Iterable[str]:
        """The topic."""
        return (check_topic(self.topic),)


class TopicsRequest(Request):
    """Which topics: these, or those with `match` in their name, the first `limit` of them."""

    topics: list[str] | None = None
    match: str | None = None
    limit: int | None = None

    def wanted(self) -> Callable[[str], bool]:
        """Whether a topic of this name is asked for."""
        names = None if self.topics is None else {check_topic(topic) for topic in self.topics}
        part = self.match or ""
        return lambda topic: (names is None or topic in names) and part in topic


class PauseRequest(TopicRequest):
    """A topic to hold, for `seconds` or until it is resumed."""

    seconds: Number | None = None

    def hold_ms(self) -> int:
        """For how long; 0 = until it is resumed."""
        return 0 if self.seconds is None else check_some_seconds("seconds", self.seconds)


class LimitRequest(TopicRequest):
    """A topic whose deliveries are limited; null lifts a limit, what is not named stays."""

    rate: Number | None = None
    burst: int | None = None
    concurrency: int | None = None
    buried_retain: Number | None = None

    def wishes(self) -> dict[str, float | None]:
        """What is wanted, by name; None = no limit."""
        checked = {
            "rate": None if self.rate is None else by_rule("rate", self.rate, rules.check_rate),
            "burst": None
            if self.burst is None
            else by_rule("burst", self.burst, rules.check_burst),
            "concurrency": None
            if self.concurrency is None
            else by_rule("concurrency", self.concurrency, rules.check_concurrency),
            "buried_retain": None
            if self.buried_retain is None
            else check_some_seconds("buried_retain", self.buried_retain),
        }
        named = {name: value for name, value in checked.items() if name in self.model_fields_set}
        return {
            ("buried_retain_ms" if name == "buried_retain" else name): value
            for name, value in named.items()
        }


class PurgeRequest(TopicRequest):
    """A topic whose jobs are dropped, all or those of one state."""

    state: str | None = None

    def checked_state(self) -> str:
        """The state, "" = all."""
        return "" if self.state is None else check_state(self.state, PURGE_STATES)


class CancelRequest(Request):
    """A tag whose jobs end, of one topic or of all."""

    tag: str | None = None
    topic: str | None = None

    def reach(self) -> Iterable[str] | None:
        """Its topic, or all."""
        return None if self.topic is None else (check_topic(self.topic),)


class RangeRequest(Request):
    """A range of due times in unix seconds, both ends in; without an end it is open there."""

    start: Number | None = None
    end: Number | None = None

    def due(self) -> Range:
        """The range in ms."""
        first = 0 if self.start is None else check_due(self.start, "start")
        last = MAX_DUE_S * 1000 if self.end is None else check_due(self.end, "end")
        if first > last:
            raise Invalid(Text("start 不能大于 end", "start: must not be after end"))
        return Range(first, last)


class TakeRequest(RangeRequest):
    """Jobs of a range to hand out and remove."""

    topic: str | None = None
    count: int | None = None

    def reach(self) -> Iterable[str]:
        """Its topic."""
        return (check_topic(self.topic),)


class ListRequest(RangeRequest):
    """A page of the jobs of a topic or a tag."""

    topic: str | None = None
    tag: str | None = None
    state: str | None = None
    limit: int | None = None
    cursor: str | None = None

    def reach(self) -> Iterable[str] | None:
        """Its topic, or all."""
        return None if self.topic is None else (check_topic(self.topic),)

    def what(self) -> Listing:
        """What to list. Invalid names the field."""
        if self.topic is None and self.tag is None:
            raise Invalid(Text("需要 topic 或 tag", "give topic, tag or both"))
        return Listing(
            topic="" if self.topic is None else check_topic(self.topic),
            tag="" if self.tag is None else check_tag(self.tag),
            state="" if self.state is None else check_state(self.state, tuple(State)),
            due=self.due(),
        )


class ForecastRequest(Request):
    """Counts per step of a range of due times."""

    topic: str | None = None
    start: Number | None = None
    end: Number | None = None
    step: Number | None = None

    def reach(self) -> Iterable[str] | None:
        """Its topic, or all."""
        return None if self.topic is None else (check_topic(self.topic),)

    def steps(self) -> tuple[int, int, int]:
        """Start and step in ms, and the number of steps."""
        if self.start is None or self.end is None or self.step is None:
            raise Invalid(Text("需要 start, end, step", "give start, end and step"))
        start_ms, end_ms = check_due(self.start, "start"), check_due(self.end, "end")
        step_ms = check_some_seconds("step", self.step)
        if start_ms >= end_ms:
            raise Invalid(Text("start 必须小于 end", "start: must be before end"))
        steps = -(-(end_ms - start_ms) // step_ms)
        if steps > MAX_FORECAST_STEPS:
            raise Invalid(
                Text(
                    f"最多{MAX_FORECAST_STEPS}步",
                    f"step: {steps} steps, at most {MAX_FORECAST_STEPS}; take a larger step",
                )
            )
        return start_ms, step_ms, steps
