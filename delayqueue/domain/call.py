"""A job's own call: the request that the server makes when the job is due. Pure.

The checks take a value that a user wrote and return what it means; they raise BadValue.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self
from urllib.parse import urlsplit

from delayqueue.domain import subscriber
from delayqueue.domain.subscriber import Method, Subscriber
from delayqueue.errors import BadValue

MAX_HEADERS: Final = 32
MAX_HEADER_BYTES: Final = 4096  # names and values together
NAME: Final = "call"  # of the result among those of a job's subscribers

# characters of a name as HTTP has them; a value is what a header can hold without a code of its own
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?")
# what HTTP itself needs, and what the server says of the job
_OURS: Final = re.compile(
    "host|connection|keep-alive|te|trailer|transfer-encoding|content-length|upgrade|expect|traceparent|"
    "proxy-.*|webhook-.*|delay-queue-.*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What the server sends, with the job's body, and what it expects.

    `give_up`: the job is buried at once after an answer that another attempt is not going to change.
    """

    url: str
    method: Method = Method.POST
    # the headers may hold secrets
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    timeout_ms: int = 30_000
    expect: str = ""
    give_up: bool = False

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Self:
        """Parse what `written` returned, also of a newer version. Raises ValueError if it is not a call."""
        try:
            found = {**USUAL, **written}
            return cls(
                url=str(written["url"]),
                method=Method(found["method"]),
                headers={str(name): str(value) for name, value in found["headers"].items()},
                timeout_ms=int(found["timeout"]),
                expect=str(found["expect"]),
                give_up=bool(found["give_up"]),
            )
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"not a call: {error}") from None

    @property
    def written(self) -> dict[str, Any]:
        """The call as a job's options keep it: what differs from the defaults."""
        return {key: value for key, value in _members(self).items() if value != USUAL[key]}

    def subscriber(self, topic: str, secret: str) -> Subscriber:
        """The only subscriber of a job with this call; `secret` signs the request, "" = it is not signed."""
        return Subscriber(
            name=NAME,
            topic=topic,
            url=self.url,
            timeout_ms=self.timeout_ms,
            expect=self.expect,
            method=self.method,
            headers=tuple(self.headers.items()),
            give_up=self.give_up,
            secret=secret,
        )


def _members(call: Call) -> dict[str, Any]:
    return {
        "url": call.url,
        "method": call.method.value,
        "headers": dict(call.headers),
        "timeout": call.timeout_ms,
        "expect": call.expect,
        "give_up": call.give_up,
    }


USUAL: Final = _members(Call(url=""))


def check_url(text: str) -> str:
    """Check a call's URL, which answers show: a password belongs into a header."""
    if "@" in urlsplit(subscriber.check_url(text)).netloc:
        raise BadValue(
            "不能包含用户名和密码，请用请求头Authorization",
            "must not have a user and a password: send the header Authorization",
        )
    return text


def check_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Check a call's headers."""
    if len(headers) > MAX_HEADERS:
        raise BadValue(f"最多{MAX_HEADERS}个", f"must have at most {MAX_HEADERS} members")
    size = sum(len(name) + len(value) for name, value in headers.items())
    if size > MAX_HEADER_BYTES:
        raise BadValue(
            f"总共最长{MAX_HEADER_BYTES}字节", f"{size} bytes in all, at most {MAX_HEADER_BYTES}"
        )
    names = set[str]()
    for name, value in headers.items():
        if not _NAME.fullmatch(name) or name.lower() in names:
            raise BadValue(
                f"{name[:64]!r} 不是有效的请求头名称，或者出现了两次",
                f"{name[:64]!r} is not a header's name, or is there twice",
            )
        if _OURS.fullmatch(name):
            raise BadValue(f"{name} 由服务设置", f"{name} is set by the server")
        if not _VALUE.fullmatch(value):
            raise BadValue(
                f"{name} 的值须为可见ASCII字符",
                f"the value of {name} must be visible ASCII characters",
            )
        names.add(name.lower())
    return dict(headers)
