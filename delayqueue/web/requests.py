"""Common to all requests: how their models parse JSON, and fields that several of them have.

null is the same as absent. Unknown fields are kept separately: warnings.py reports them.
"""

from collections.abc import Callable, Iterable, Mapping
from random import random
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from delayqueue.answers.schedules import Schedule
from delayqueue.answers.subscribers import Subscriber
from delayqueue.domain import retry, subscriber, worker_identity
from delayqueue.domain.job import CHANGE, MAX_DUE_S, MAX_TOPIC_BYTES, IfExists
from delayqueue.domain.outboxes import MAX_REASON_CHARS, MAX_ROWS, Outbox
from delayqueue.errors import Invalid, Text
from delayqueue.store.paging import page_of
from delayqueue.web.fields import (
    FIRST,
    STRIPPED,
    Bounds,
    JobCount,
    JobId,
    JobIds,
    Number,
    OutboxName,
    PushedTopic,
    SchemaExtra,
    Tag,
    Topic,
    Validate,
    check_label,
    exclusive,
    one_of,
    optional,
)

Name = Annotated[
    str,
    STRIPPED,
    Validate(subscriber.check_name),
    Field(
        description=f"Names the subscriber or the schedule, 1 to {subscriber.MAX_NAME_BYTES} bytes."
    ),
]

Item = TypeVar("Item", Schedule, Subscriber)


class Request(BaseModel):
    """Base of all requests."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=False)

    # whether the original has it: the original also accepts `Topic` for `topic`, and PUT for POST
    of_original: ClassVar[bool] = False
    # if several fields are invalid, this one is reported, otherwise the first of them
    report_first: ClassVar[str] = ""
    # messages for missing fields, if there is more to say than for an empty one
    absent: ClassVar[Mapping[str, Text]] = MappingProxyType({})
    # the models of the objects in it, by field
    inner: ClassVar[dict[str, type["Request"]]] = {}

    # the topics that it concerns without a `topic`: None = all; () = a few that the store, or its handler, checks
    without_topic: ClassVar[tuple[()] | None] = None

    def named_topics(self) -> Iterable[str] | None:
        """The topics that a client must be allowed to reach, None = all."""
        topic = vars(self).get("topic")
        return self.without_topic if topic is None else (topic,)

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Find the model's nested objects, once."""
        cls.inner = {
            name: kind
            for name, field in cls.model_fields.items()
            for kind in get_args(field.annotation)
            if isinstance(kind, type) and issubclass(kind, Request)
        }

    @classmethod
    def siblings(cls, name: str) -> list[str]:
        """The fields beside one of that name; FIELD.NAME is one of a nested object."""
        field, dot, _ = name.partition(".")
        if dot and field in cls.inner:
            return [f"{field}.{inner}" for inner in cls.inner[field].model_fields]
        return list(cls.model_fields)


class OneRequest(Request):
    """One job."""

    id: JobId

    without_topic = ()


class IdRequest(Request):
    """One id or many."""

    id: JobId | None = optional("The job; this or `ids`.")
    ids: JobIds | None = None

    without_topic = ()

    @property
    def is_many(self) -> bool:
        """Whether `ids` was given, so that the answer is a list."""
        return self.ids is not None

    def each(self) -> list[str]:
        """The ids. Raises Invalid unless it has either one or many."""
        if self.ids is None:
            if self.id is None:
                raise Invalid.of("job id不能为空", "id: must not be empty")
            return [self.id]
        if self.id is not None:
            raise exclusive("id", "ids")
        return self.ids


class TopicRequest(Request):
    """One topic."""

    topic: Topic


class PushedTopicRequest(TopicRequest):
    """One topic that jobs can be pushed to: not a list of them, as /pop takes."""

    topic: PushedTopic = Field(description=f"The topic, 1 to {MAX_TOPIC_BYTES} bytes, no comma.")


class AnyTopicRequest(Request):
    """One topic, or all."""

    topic: Topic | None = optional("Only of this topic; of all by default.")


class PagedRequest(AnyTopicRequest):
    """What is registered for one topic, or for all; with `limit` a page of it."""

    limit: JobCount | None = optional("The most to return; with it, the answer is a page.")
    cursor: str | None = optional("With `limit`: the cursor that the previous page returned.")

    def page(
        self,
        listing: str,
        registered: Iterable[Item],
        place: Callable[[Item], tuple[str | int, ...]],
    ) -> tuple[list[Item], str | None]:
        """Those of its topic, or a page of them and the cursor of the next one; None = there are no pages.

        They are sorted by `place`. Raises Invalid for a cursor without a limit, or one that was made up.
        """
        if self.cursor and self.limit is None:
            raise Invalid.of("cursor 只能和 limit 一起用", "cursor: goes with limit")
        found = [one for one in registered if self.topic in {None, one.topic}]
        if self.limit is None:
            return found, None
        return page_of(found, place, (listing, self.topic), self.limit, self.cursor or "")


class TagRequest(IdRequest):
    """Jobs by their ids, or those of a tag, in one topic or in all."""

    tag: Tag | None = None
    topic: Topic | None = optional("With `tag`: only in this topic.")

    def named_topics(self) -> Iterable[str] | None:
        """Its topic, if it has one; a tag can be on jobs of all topics."""
        is_by_tag = self.topic is None and self.tag is not None
        return None if is_by_tag else super().named_topics()

    def by_tag(self) -> bool:
        """Whether a tag was given instead of ids."""
        if self.tag is not None and self._has_id:
            raise exclusive("tag", "id")
        return self.tag is not None

    @property
    def _has_id(self) -> bool:
        return self.id is not None or self.ids is not None


IfNamed = Annotated[
    str,
    one_of(*IfExists, CHANGE),
    Field(
        description=(
            "If another one has the name: `replace` or `keep` that one, or `fail` with code 5, the default. "
            "`change` changes only the fields that are given, and needs no other."
        )
    ),
]


class NameRequest(Request):
    """The name of a subscriber or a schedule.

    It may be one of any topic, and to change it may be to move it, its headers and its secret to another topic.
    """

    name: Name

    def named_topics(self) -> None:
        """Every topic."""
        return


Delays = Annotated[
    list[Number | str],
    FIRST,
    SchemaExtra(maxItems=retry.MAX_STEPS),
    Field(description='Seconds, or texts such as "15s", "2m".'),
]
Preset = Annotated[
    str,
    SchemaExtra(enum=list(retry.PRESETS)),
    Field(description="The schedule of a payment service."),
]
Steps = Annotated[
    int,
    SchemaExtra(minimum=1, maximum=retry.MAX_STEPS),
    Field(
        description="The number of delays by a formula: `base`, `base`·`factor`, `base`·`factor`², …"
    ),
]
Factor = Annotated[
    Number,
    SchemaExtra(minimum=1, maximum=100),
    Field(description="Each delay is this many times the one before. 2 by default."),
]
Jitter = Annotated[
    Number,
    SchemaExtra(minimum=0, maximum=1),
    Field(description="Each delay is moved at random by up to this part of itself. 0 by default."),
]


class RetryRequest(Request):
    """A retry schedule: explicit delays, a preset's name, or a formula."""

    delays: Delays | None = None
    preset: Preset | None = None
    max: Steps | None = None
    base: Number | str | None = optional("The first delay of the formula. 1 by default.")
    factor: Factor | None = None
    cap: Number | str | None = optional("The longest delay of the formula. 86400 by default.")
    jitter: Jitter | None = None
    _delays_ms: tuple[int, ...] = PrivateAttr()

    def model_post_init(self, _context: Any) -> None:
        """Expand the schedule. Raises BadValue if it is invalid."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        self._delays_ms = retry.expanded(given, random)

    @property
    def delays_ms(self) -> tuple[int, ...]:
        """The schedule."""
        return self._delays_ms


class WorkerRequest(Request):
    """Who polls."""

    name: Annotated[
        str,
        STRIPPED,
        Validate(check_label(worker_identity.MAX_NAME_BYTES)),
        Field(description=f"The name of the worker, 1 to {worker_identity.MAX_NAME_BYTES} bytes."),
    ]
    version: (
        Annotated[str, Validate(check_label(worker_identity.MAX_VERSION_BYTES, may_be_empty=True))]
        | None
    ) = optional(f"The version of its program, at most {worker_identity.MAX_VERSION_BYTES} bytes.")
    host: (
        Annotated[str, Validate(check_label(worker_identity.MAX_NAME_BYTES, may_be_empty=True))]
        | None
    ) = optional(f"The machine that it runs on, at most {worker_identity.MAX_NAME_BYTES} bytes.")
    pid: Annotated[int, Bounds(0, worker_identity.MAX_PID)] | None = optional(
        "Its process id on that machine."
    )
    concurrency: Annotated[int, Bounds(0, worker_identity.MAX_CONCURRENCY)] | None = optional(
        "How many jobs it runs at once."
    )

    @property
    def identity(self) -> worker_identity.WorkerIdentity:
        """The worker, as it describes itself."""
        return worker_identity.WorkerIdentity(
            self.name, self.version or "", self.host or "", self.pid or 0, self.concurrency or 0
        )


class OutboxRequest(Request):
    """The state of an outbox."""

    name: OutboxName
    failed: Annotated[int, Bounds(0, MAX_ROWS)] | None = optional(
        "Rows that cannot be carried out."
    )
    reason: Annotated[str, Validate(lambda text: text[:MAX_REASON_CHARS])] | None = optional(
        f"Why the newest failed row cannot be carried out, {MAX_REASON_CHARS} characters at most."
    )
    oldest_age: Annotated[float, Bounds(0, MAX_DUE_S)] | None = optional(
        "Seconds that the oldest row has waited; 0 = none waits."
    )

    @property
    def report(self) -> Outbox:
        """The relay's report."""
        return Outbox(self.name, self.failed or 0, self.reason or "", self.oldest_age or 0)
