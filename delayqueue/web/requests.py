"""What each endpoint takes. Types are checked by pydantic, values by fields.py.

As in the original, null is as good as absent, and ids and topics lose their outer white space. Types are strict: `true`
or `"1"` is no number, a number is no id. Unknown fields are kept aside: doubts.py tells of them.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from random import random
from typing import Annotated, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field

from delayqueue import retry
from delayqueue.errors import BadValue, Invalid, Text
from delayqueue.job import (
    MAX_BATCH,
    MAX_POP_TOPICS,
    IfExists,
    Job,
    State,
)
from delayqueue.web.fields import (
    WHITE_SPACE,
    check_body,
    check_id,
    check_if_exists,
    check_pushed_topic,
    check_seconds,
    check_some_seconds,
    check_state,
    check_tags,
    check_topic,
    check_traceparent,
    check_ttr,
    check_when,
)

# nobody plans so far; a unix time that was sent as a delay is half a century
LONG_DELAY_S: Final = 366 * 86_400

KICK_STATES = (State.BURIED, State.DELAYED)

Number = Annotated[float, Field(allow_inf_nan=False)]


class Request(BaseModel):
    """Base of all requests."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=False)

    # whether `Topic` is as good as `topic`, as it is to the original
    any_case: ClassVar[bool] = False

    def reach(self) -> Iterable[str] | None:
        """The topics that it concerns, None = all. A verb by id says (): the store sees to those."""
        return None

    @property
    def is_doubtful(self) -> bool:
        """Whether there is an unknown field or a long delay."""
        return bool(self.__pydantic_extra__ or self.long_delay_s)

    @property
    def unknown(self) -> Collection[str]:
        """The fields that were sent and that no such request has."""
        return self.__pydantic_extra__ or ()

    @property
    def long_delay_s(self) -> float:
        """Its delay, where it has one of more than a year; else 0."""
        delay_s: float = self.__dict__.get("delay") or 0
        return delay_s if delay_s > LONG_DELAY_S else 0


def with_inner(
    extra: Mapping[str, object] | None, field: str, inner: Request | None
) -> Collection[str]:
    """The unknown fields of a request, and those of an object in it, as FIELD.NAME."""
    if inner is None or not inner.unknown:
        return extra or ()
    return [*(extra or ()), *(f"{field}.{name}" for name in inner.unknown)]


class RetryRequest(Request):
    """A retry schedule: explicit delays, a preset's name, or a formula."""

    delays: list[Number | str] | None = None
    preset: str | None = None
    max: int | None = None
    base: Number | str = 1
    factor: Number = 2
    cap: Number | str = 86_400
    jitter: Number = 0

    def schedule(self) -> tuple[int, ...]:
        """The delays in ms. Invalid says which field is wrong."""
        if sum(part is not None for part in (self.delays, self.preset, self.max)) != 1:
            raise Invalid(
                Text(
                    "retry 需要 delays, preset 或 max 之一",
                    "retry: give one of delays, preset, max",
                )
            )
        try:
            return self._schedule()
        except BadValue as error:
            raise Invalid(Text(f"retry: {error.text.zh}", f"retry: {error.text.en}")) from None

    def _schedule(self) -> tuple[int, ...]:
        if self.delays is not None:
            return retry.explicit(self.delays)
        if self.preset is not None:
            return retry.preset(self.preset)
        return retry.exponential(
            steps=self.max or 0,
            base_ms=retry.duration_ms(self.base),
            factor=self.factor,
            cap_ms=retry.duration_ms(self.cap),
            jitter=self.jitter,
            random=random,
        )


class PushRequest(Request):
    """A job as a client pushes it."""

    topic: str | None = None
    id: str | None = None
    delay: Number | None = None
    due: Number | None = None
    ttr: int | None = None
    body: str | None = None
    tags: list[str] | None = None
    retry: RetryRequest | None = None
    if_exists: str | None = None
    retain: Number | None = None
    expire: Number | None = None
    traceparent: str | None = None

    any_case = True

    def reach(self) -> Iterable[str]:
        """Its topic."""
        return (check_topic(self.topic),)

    @property
    def is_doubtful(self) -> bool:
        """As of all requests, in a third of the time, since this one is read most often."""
        return bool(
            self.__pydantic_extra__
            or (self.retry is not None and self.retry.__pydantic_extra__)
            or (self.delay is not None and self.delay > LONG_DELAY_S)
        )

    @property
    def unknown(self) -> Collection[str]:
        """Those of its retry schedule, too."""
        return with_inner(self.__pydantic_extra__, "retry", self.retry)

    @property
    def id_is_ours(self) -> bool:
        """Whether the server makes the id."""
        return self.id is not None and self.id.strip(WHITE_SPACE) == "*"

    def job(self, max_body_bytes: int, new_id: Callable[[], str], trace: str = "") -> Job:
        """The job; `new_id` makes the id for "*", `trace` is the request's traceparent.

        Invalid or TooLarge names the field and what it may be.
        """
        job_id = check_id(self.id)
        topic = check_pushed_topic(self.topic)
        body = self.body or ""
        check_body(body, max_body_bytes)
        delay_ms, due_ms = check_when(self.delay, self.due)
        return Job(
            topic=topic,
            id=new_id() if self.id_is_ours else job_id,
            body=body,
            ttr_ms=check_ttr(self.ttr),
            delay_ms=delay_ms,
            due_ms=due_ms,
            tags=check_tags(self.tags) if self.tags else (),
            retry_ms=self.retry.schedule() if self.retry else None,
            if_exists=IfExists.REPLACE
            if self.if_exists is None
            else check_if_exists(self.if_exists),
            retain_ms=0 if self.retain is None else check_seconds("retain", self.retain),
            expire_ms=0 if self.expire is None else check_some_seconds("expire", self.expire),
            traceparent=check_traceparent(self.traceparent) if self.traceparent else trace,
        )


class PopRequest(Request):
    """Who waits, and for how long."""

    topic: str | None = None
    timeout: Number | None = None
    count: int | None = None

    any_case = True

    def reach(self) -> Iterable[str]:
        """Its topics."""
        return self.topics()

    def topics(self) -> tuple[str, ...]:
        """The topics in order of preference, each once."""
        names = [name.strip(WHITE_SPACE) for name in (self.topic or "").split(",")]
        topics = tuple(dict.fromkeys(name for name in names if name))
        if not topics:
            raise Invalid(Text("topic不能为空", "topic: must not be empty"))
        if len(topics) > MAX_POP_TOPICS:
            raise Invalid(
                Text(
                    f"topic 最多{MAX_POP_TOPICS}个",
                    f"topic: {len(topics)} topics, at most {MAX_POP_TOPICS} in a pop",
                )
            )
        for topic in topics:
            check_topic(topic)
        return topics

    def wait_s(self, most_s: float) -> float:
        """How long to wait for the first job."""
        if self.timeout is None:
            return most_s
        if not 0 <= self.timeout <= most_s:
            raise Invalid(
                Text(
                    f"timeout 取值范围0 - {most_s:g}",
                    f"timeout {self.timeout:g}: must be 0 to {most_s:g} seconds",
                )
            )
        return self.timeout


class OneRequest(Request):
    """One job."""

    id: str | None = None

    def reach(self) -> Iterable[str] | None:
        """Nothing but a job."""
        return ()


class IdRequest(OneRequest):
    """One id or many."""

    ids: list[str] | None = None

    @property
    def many(self) -> bool:
        """Whether `ids` was given, so that the answer is a list."""
        return self.ids is not None

    def each(self) -> list[str]:
        """The ids, checked."""
        if self.ids is None:
            return [check_id(self.id)]
        if self.id is not None:
            raise Invalid(Text("id 和 ids 只能有一个", "id and ids exclude each other"))
        if not 1 <= len(self.ids) <= MAX_BATCH:
            raise Invalid(
                Text(
                    f"ids 个数1 - {MAX_BATCH}",
                    f"ids: must be 1 to {MAX_BATCH}, not {len(self.ids)}",
                )
            )
        return [check_id(job_id) for job_id in self.ids]


class GetRequest(IdRequest):
    """Jobs to look at."""

    any_case = True


class TagRequest(IdRequest):
    """Jobs by their ids, or those of a tag, of one topic or of all."""

    tag: str | None = None
    topic: str | None = None

    def reach(self) -> Iterable[str] | None:
        """Its topic, where it has one; a tag can be on jobs of all."""
        if self.topic is not None:
            return (check_topic(self.topic),)
        return () if self.tag is None else None

    def by_tag(self) -> bool:
        """Whether a tag was given instead of ids."""
        if self.tag is not None and self._has_id:
            raise Invalid(Text("tag 和 id 只能有一个", "tag and id exclude each other"))
        return self.tag is not None

    @property
    def _has_id(self) -> bool:
        return self.id is not None or self.ids is not None


class RescheduleRequest(TagRequest):
    """A new due time for jobs."""

    delay: Number | None = None
    due: Number | None = None

    def by_tag(self) -> bool:
        """Whether a tag was given instead of ids."""
        if self.topic is not None and self.tag is None:
            raise Invalid(Text("topic 只能和 tag 一起用", "topic: goes with tag, not with id"))
        return super().by_tag()

    def when(self) -> tuple[int, int | None]:
        """Delay and due time in ms; the due time counts where it is not None."""
        if self.delay is None and self.due is None:
            raise Invalid(Text("需要 delay 或 due", "give one of delay, due"))
        return check_when(self.delay, self.due)


class KickRequest(TagRequest):
    """Jobs to make ready now: by id, or in a state, those of a tag or the first `count` of a topic."""

    state: str | None = None
    count: int | None = None

    def by_tag(self) -> bool:
        """Whether a tag was given instead of ids."""
        if self.tag is not None and self.count is not None:
            raise Invalid(Text("count 不能和 tag 一起用", "count: goes with topic, not with tag"))
        return super().by_tag()

    def by_topic(self) -> bool:
        """Whether a topic was given instead of ids."""
        if self.topic is None:
            if self.state is not None and self.tag is None:
                raise Invalid(
                    Text("state 只能和 topic 或 tag 一起用", "state: goes with topic or tag")
                )
            return False
        if self._has_id:
            raise Invalid(Text("topic 和 id 只能有一个", "topic and id exclude each other"))
        return True

    def checked_state(self) -> State:
        """The state of the jobs to kick, where they are not named by their ids."""
        return State.BURIED if self.state is None else State(check_state(self.state, KICK_STATES))
