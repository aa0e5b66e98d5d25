"""Every error that a client can get: its code, its HTTP status, its message in Chinese and English.

The status is 200 whenever the request reached the queue; the code says what happened. Other statuses are for requests
that never reached it.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from enum import IntEnum
from http import HTTPStatus
from math import ceil
from types import MappingProxyType
from typing import ClassVar, Final, NamedTuple, Self


class Code(IntEnum):
    """The envelope's `code`; the scripts return the same numbers."""

    OK = 0
    INVALID = 1
    NO_SUCH_JOB = 2
    WRONG_STATE = 3
    STALE_RECEIPT = 4
    JOB_EXISTS = 5
    UNAVAILABLE = 6
    UNAUTHORIZED = 7
    FORBIDDEN = 8
    TOO_LARGE = 9
    TOO_MANY = 10
    TOPIC_FULL = 11


# A member of an enumeration, looked up by its name at each request, takes as long as ten variables.
OK: Final[Code] = Code.OK


class Text(NamedTuple):
    """A message in both languages of the server."""

    zh: str
    en: str


def utc(at: datetime) -> str:
    """The time as messages tell it: 2026-11-28 09:33:00 UTC. The page shows it in the browser's zone."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


class BadValue(ValueError):
    """An invalid value; the message says what it must be. For values from requests and from files."""

    def __init__(self, zh: str, en: str) -> None:
        super().__init__(en)
        self.text: Text = Text(zh, en)


MAX_SHOWN_CHARS: Final = 64


def shown(value: object) -> str:
    """The value of a request as a message quotes it: the start of a long value is enough to recognise it."""
    text = repr(value[: MAX_SHOWN_CHARS + 1] if isinstance(value, str) else value)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"


ADDED = Text("添加成功", "added")
DONE = Text("操作成功", "ok")


class QueueError(Exception):
    """An error with its own answer; `text` replaces the class's message if there is more to say."""

    code: ClassVar[Code]
    status: ClassVar[HTTPStatus] = HTTPStatus.OK
    default: ClassVar[Text]
    headers: Mapping[str, str] = MappingProxyType({})  # for the answer

    def __init__(self, text: Text | None = None) -> None:
        self.text: Text = text or self.default
        super().__init__(self.text.en)

    @classmethod
    def of(cls, zh: str, en: str) -> Self:
        """The error with this message."""
        return cls(Text(zh, en))


class Invalid(QueueError):
    """The request is malformed or asks for something that is not allowed."""

    code = Code.INVALID
    default: ClassVar[Text] = Text("请求无效", "invalid request")


class BadJson(Invalid):
    """The body is not the JSON that the endpoint takes."""

    default: ClassVar[Text] = Text("解析json失败", "the request is not valid JSON")


class Malformed(Invalid):
    """The request is not HTTP."""

    status = HTTPStatus.BAD_REQUEST
    default: ClassVar[Text] = Text("不是有效的HTTP请求", "this is not a valid HTTP request")

    def __init__(self, reason: str) -> None:
        super().__init__(Text(f"{self.default.zh}：{reason}", f"{self.default.en}: {reason}"))


class NoSuchPath(Invalid):
    """No endpoint has this path."""

    status = HTTPStatus.NOT_FOUND
    default: ClassVar[Text] = Text("没有这个接口", "no such endpoint")


class WrongMethod(Invalid):
    """The endpoint exists, but not for this method."""

    status = HTTPStatus.METHOD_NOT_ALLOWED
    default: ClassVar[Text] = Text("请求方法不对", "wrong method")

    def __init__(self, allowed: Iterable[str]) -> None:
        super().__init__()
        self.headers: Mapping[str, str] = {"Allow": ", ".join(sorted(allowed))}


class SlowRequest(Invalid):
    """The request's body did not arrive in time."""

    status = HTTPStatus.REQUEST_TIMEOUT
    default: ClassVar[Text] = Text("请求超时", "the request did not arrive in time")


class NoSuchJob(QueueError):
    """The id is unknown, but a receipt or a state was expected."""

    code = Code.NO_SUCH_JOB
    default: ClassVar[Text] = Text("job不存在", "no such job")


class WrongState(QueueError):
    """The job is not in a state that allows this."""

    code = Code.WRONG_STATE
    default: ClassVar[Text] = Text("job状态不允许此操作", "the job's state does not allow this")


class StaleReceipt(QueueError):
    """The receipt is not from the job's present reservation."""

    code = Code.STALE_RECEIPT
    default: ClassVar[Text] = Text(
        "receipt已失效", "stale receipt: not that of a present reservation"
    )


class JobExists(QueueError):
    """`if_exists` is `fail`, and the id already exists."""

    code = Code.JOB_EXISTS
    default: ClassVar[Text] = Text("job已存在", "a job with this id exists")


class Unavailable(QueueError):
    """The store does not answer or refuses to write."""

    code = Code.UNAVAILABLE
    status = HTTPStatus.SERVICE_UNAVAILABLE
    default: ClassVar[Text] = Text("存储暂不可用", "the store is unavailable; try again")

    @classmethod
    def because(cls, ailment: Text | None, since: datetime | None = None) -> Self:
        """The error with the reason why the store is unavailable, and since when; None = unknown."""
        if ailment is None:
            return cls()
        zh, en = f"存储不可用：{ailment.zh}", f"the store is unavailable: {ailment.en}"
        return (
            cls.of(f"{zh}（自 {utc(since)} 起）", f"{en} (since {utc(since)})")
            if since
            else cls.of(zh, en)
        )


class Unauthorized(QueueError):
    """The request needs a token, and has no valid one."""

    code = Code.UNAUTHORIZED
    status = HTTPStatus.UNAUTHORIZED
    default: ClassVar[Text] = Text("需要有效的token", "a valid token is needed")
    # the second one makes browsers ask for the token
    headers: Mapping[str, str] = MappingProxyType(
        {"WWW-Authenticate": 'Bearer realm="delay-queue", Basic realm="delay-queue"'}
    )

    def __init__(self, text: Text | None = None, *, page_asks: bool = False) -> None:
        """`page_asks`: a page in the browser asks for the token, so the browser itself should not."""
        super().__init__(text)
        if page_asks:
            self.headers: Mapping[str, str] = {"WWW-Authenticate": 'Bearer realm="delay-queue"'}


class Forbidden(QueueError):
    """The client may not do this."""

    code = Code.FORBIDDEN
    status = HTTPStatus.FORBIDDEN
    default: ClassVar[Text] = Text("没有权限", "not allowed")


class TooLarge(QueueError):
    """The request, or a body in it, is larger than the server accepts."""

    code = Code.TOO_LARGE
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    default: ClassVar[Text] = Text("请求过大", "the request is too large")


class Compressed(TooLarge):
    """The request is compressed: half a megabyte can unpack to half a gigabyte."""

    default: ClassVar[Text] = Text(
        "不接受压缩的请求体，请发送未压缩的内容",
        "a compressed request can be of any size; send it uncompressed",
    )


class TooMany(QueueError):
    """More requests or waiting polls than the server accepts; `retry_after_s` says when to try again."""

    code = Code.TOO_MANY
    status = HTTPStatus.TOO_MANY_REQUESTS
    default: ClassVar[Text] = Text("请求过多", "too many requests; try again later")

    def __init__(self, text: Text | None = None, *, retry_after_s: float = 1) -> None:
        super().__init__(text)
        self.retry_after_s = retry_after_s
        self.headers: Mapping[str, str] = {"Retry-After": str(max(1, ceil(retry_after_s)))}


class TopicFull(QueueError):
    """The topic has as many jobs as its limit `max_jobs` allows; the job was not added."""

    code = Code.TOPIC_FULL
    default: ClassVar[Text] = Text("topic已满", "topic full")

    @classmethod
    def at(cls, in_bucket: int, max_jobs: int) -> Self:
        """The error that names the limit, and what of it the job's bucket may have."""
        jobs = "1 job" if max_jobs == 1 else f"{max_jobs:,} jobs"
        if in_bucket == max_jobs:
            return cls.of(f"topic已满：{max_jobs:,}个job", f"topic full: {jobs}")
        return cls.of(
            f"topic在此job的桶中已满：{max_jobs:,}个job中的{in_bucket:,}个",
            f"topic full in the job's bucket: {in_bucket:,} of {jobs}",
        )


# The meaning of a script's code for a job.
OF_CODE: dict[Code, type[QueueError]] = {
    error.code: error
    for error in (Invalid, NoSuchJob, WrongState, StaleReceipt, JobExists, Unavailable, TopicFull)
}
