"""What each endpoint takes. Types are checked by pydantic, values here; seconds become milliseconds here.

As in the original, unknown fields are ignored, null is as good as absent, and ids and topics lose their outer white
space. Types are strict: `true` or `"1"` is no number, a number is no id.
"""

from collections.abc import Callable
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

from delayqueue.errors import BadJson, Invalid, Text, TooLarge
from delayqueue.job import (
    MAX_BATCH,
    MAX_DELAY_S,
    MAX_ID_BYTES,
    MAX_MESSAGE_CHARS,
    MAX_POP_TOPICS,
    MAX_TOPIC_BYTES,
    MAX_TTR_S,
    Job,
)

# What the original's strings.TrimSpace takes off.
WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)

MAX_DUE_S = 10_000_000_000  # the year 2286; a due time in milliseconds by mistake is far above

Number = Annotated[float, Field(allow_inf_nan=False)]


class Request(BaseModel):
    """Base of all requests."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=False)


Model = TypeVar("Model", bound=Request)


def parse(model: type[Model], raw: bytes) -> Model:
    """Read one JSON object. BadJson names the first field that does not fit."""
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise _bad_json(error) from None


def parse_item(model: type[Model], item: object) -> Model:
    """Read one element of an array that was read already."""
    try:
        return model.model_validate(item)
    except ValidationError as error:
        raise _bad_json(error) from None


def parse_array(raw: bytes) -> list[object]:
    """Read a JSON array of 1 to 1000 elements; what they are is not looked at."""
    try:
        items = from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        raise BadJson(Text(f"解析json失败: {error}", f"not valid JSON: {error}")) from None
    if not isinstance(items, list) or not items:
        raise BadJson(Text("解析json失败: 需要非空数组", "an array of jobs must not be empty"))
    if len(items) > MAX_BATCH:
        raise Invalid(
            Text(f"一次最多{MAX_BATCH}个job", f"{len(items)} jobs: at most {MAX_BATCH} in a call")
        )
    return items


def _bad_json(error: ValidationError) -> BadJson:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    where = f"{field}: " if field else ""
    return BadJson(Text(f"解析json失败: {where}{first['msg']}", f"{where}{first['msg']}"))


class PushRequest(Request):
    """A job as a client pushes it."""

    topic: str | None = None
    id: str | None = None
    delay: Number | None = None
    due: Number | None = None
    ttr: int | None = None
    body: str | None = None

    @property
    def id_is_ours(self) -> bool:
        """Whether the server makes the id."""
        return self.id is not None and self.id.strip(WHITE_SPACE) == "*"

    def job(self, max_body_bytes: int, new_id: Callable[[], str]) -> Job:
        """The job; `new_id` makes the id for "*". Invalid or TooLarge names the field and what it may be."""
        job_id = check_id(self.id)
        topic = check_topic(self.topic)
        if "," in topic:
            raise Invalid(
                Text("topic 不能包含逗号", "topic: no comma, it separates the topics of a pop")
            )
        body = self.body or ""
        check_body(body, max_body_bytes)
        return Job(
            topic=topic,
            id=new_id() if self.id_is_ours else job_id,
            body=body,
            ttr_ms=check_ttr(self.ttr),
            delay_ms=check_delay(self.delay or 0),
            due_ms=self._due_ms(),
        )

    def _due_ms(self) -> int | None:
        if self.due is None:
            return None
        if self.delay:
            raise Invalid(Text("delay 和 due 只能有一个", "delay and due exclude each other"))
        return check_due(self.due)


class PopRequest(Request):
    """Who waits, and for how long."""

    topic: str | None = None
    timeout: Number | None = None
    count: int | None = None

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

    def wanted(self) -> int:
        """How many jobs at most."""
        if self.count is None:
            return 1
        if not 1 <= self.count <= MAX_BATCH:
            raise Invalid(
                Text(
                    f"count 取值范围1 - {MAX_BATCH}",
                    f"count {self.count}: must be 1 to {MAX_BATCH}",
                )
            )
        return self.count


class IdRequest(Request):
    """One id or many."""

    id: str | None = None
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


class EndRequest(IdRequest):
    """Jobs to finish or delete."""

    receipt: str | None = None
    message: str | None = None

    def note(self) -> str:
        """The message; its tail is cut off where it is too long."""
        return (self.message or "")[:MAX_MESSAGE_CHARS]


def check_id(job_id: str | None) -> str:
    """The id without its outer white space."""
    job_id = (job_id or "").strip(WHITE_SPACE)
    if not job_id:
        raise Invalid(Text("job id不能为空", "id: must not be empty"))
    _check_size("id", job_id, MAX_ID_BYTES)
    return job_id


def check_topic(topic: str | None) -> str:
    """The topic without its outer white space."""
    topic = (topic or "").strip(WHITE_SPACE)
    if not topic:
        raise Invalid(Text("topic 不能为空", "topic: must not be empty"))
    _check_size("topic", topic, MAX_TOPIC_BYTES)
    return topic


def _check_size(field: str, value: str, limit_bytes: int) -> None:
    if len(value) * 4 > limit_bytes and (size := len(value.encode())) > limit_bytes:
        raise Invalid(
            Text(f"{field} 最长{limit_bytes}字节", f"{field}: {size} bytes, at most {limit_bytes}")
        )


def check_body(body: str, limit_bytes: int) -> None:
    """TooLarge where the body has more bytes than the server takes."""
    if len(body) * 4 > limit_bytes and (size := len(body.encode())) > limit_bytes:
        raise TooLarge(
            Text(f"body 最长{limit_bytes}字节", f"body: {size} bytes, at most {limit_bytes}")
        )


def check_delay(delay_s: float) -> int:
    """Seconds as milliseconds."""
    if not 0 <= delay_s <= MAX_DELAY_S:
        raise Invalid(
            Text("delay 取值范围0 - (2^31 - 1)", f"delay {delay_s:g}: must be 0 to 2^31 seconds")
        )
    return round(delay_s * 1000)


def check_due(due_s: float) -> int:
    """A unix time in seconds as milliseconds."""
    if not 0 <= due_s <= MAX_DUE_S:
        raise Invalid(
            Text(
                f"due 是unix时间戳(秒), 取值范围0 - {MAX_DUE_S}",
                f"due {due_s:g}: must be unix seconds (not milliseconds), 0 to {MAX_DUE_S}",
            )
        )
    return round(due_s * 1000)


def check_ttr(ttr_s: int | None) -> int:
    """Seconds as milliseconds."""
    if ttr_s is None or not 1 <= ttr_s <= MAX_TTR_S:
        raise Invalid(
            Text(
                f"ttr 取值范围1 - {MAX_TTR_S}",
                f"ttr {ttr_s or 0}: must be 1 to {MAX_TTR_S} seconds",
            )
        )
    return ttr_s * 1000


def is_array(raw: bytes) -> bool:
    """Whether the JSON text is an array."""
    return raw[:64].lstrip()[:1] == b"["
