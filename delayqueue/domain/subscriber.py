"""A subscriber: a URL that the server calls with a topic's due jobs. Pure.

The checks take a value that a user wrote and return what it means; they raise BadValue.
"""

import binascii
import json
import re
from base64 import b64decode
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any, Final, Self
from urllib.parse import urlsplit

from delayqueue.domain import retry
from delayqueue.domain.written import defined
from delayqueue.errors import BadValue

MAX_NAME_BYTES = 128
MAX_ORDER = 1_000_000
MAX_TIMEOUT_S = 300
LONGEST_TRIAL_S = 30  # the longest that the server waits for the answer to a made-up job
MAX_CONCURRENCY = 1000
MAX_URL_CHARS = 2048
MAX_EXPECT_CHARS = 256
SECRET_BYTES = (24, 64)  # as the Standard Webhooks specification says

SECRET_PREFIX = "whsec_"  # noqa: S105  # not itself a secret


class OnFailure(StrEnum):
    """What happens to the job after a subscriber has failed for good."""

    BURY = "bury"  # it is buried, until somebody looks at it
    CONTINUE = "continue"  # nothing: when all others are done it ends as finished, with the message


class Payload(StrEnum):
    """What a webhook is sent."""

    BODY = "body"  # the job's body as it is
    EVENT = "event"  # a JSON object: the job, and the results of the subscribers before


class Method(StrEnum):
    """How a URL is called."""

    POST = "POST"
    PUT = "PUT"
    PATCH = "PATCH"
    DELETE = "DELETE"
    GET = "GET"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscriber:
    """A `url` that is called. `handler` is that of an earlier version instead: a Python callable, or "".

    `headers` are names and values; `give_up`: an answer that another attempt is not going to change is a failure for
    good.
    """

    name: str
    topic: str
    order: int = 0  # a topic's subscribers are called in this order, then by name
    url: str = ""
    handler: str = ""
    timeout_ms: int = 30_000  # of one call
    # for jobs without their own schedule; the delays that webhook providers use
    retry_ms: tuple[int, ...] = retry.explicit(("5s", "5m", "30m", "2h", "5h", "10h"))
    concurrency: int = 10  # calls at once per server process
    secret: str = field(default="", repr=False)  # "" = webhooks are not signed
    declared: bool = False  # comes from a config file, not from a client
    expect: str = ""  # what the answer must be, or contain if written as "*success*"; "" = any
    on_failure: OnFailure = OnFailure.BURY
    payload: Payload = Payload.BODY
    method: Method = Method.POST
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    give_up: bool = False

    @classmethod
    def read(cls, definition: str) -> Self:
        """Parse what `definition` returned, also of a newer version. Raises ValueError if it is not a subscriber."""
        try:
            found = NEWER_FIELDS | defined(cls, definition)
            found["retry_ms"] = tuple(int(delay_ms) for delay_ms in found["retry_ms"])
            found["on_failure"] = OnFailure(found["on_failure"])
            found["payload"] = Payload(found["payload"])
            found["method"] = Method(found["method"])
            found["headers"] = tuple((str(name), str(value)) for name, value in found["headers"])
            return cls(**found)
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"not a definition of a subscriber: {error}") from None

    @property
    def definition(self) -> str:
        """The subscriber as the store keeps it.

        Newer fields are left out if they have their defaults, so that it equals what older versions wrote.
        """
        written = asdict(self)
        for name, default in NEWER_FIELDS.items():
            if written[name] == default:
                del written[name]
        return json.dumps(written, ensure_ascii=False)

    def is_expected(self, said: str) -> bool:
        """Whether the subscriber's answer is the expected one."""
        wanted = self.expect
        if len(wanted) > 2 and wanted[0] == wanted[-1] == "*":
            return wanted[1:-1] in said
        return not wanted or said == wanted


_NEWER: Final = {"expect", "on_failure", "payload", "method", "headers", "give_up"}
NEWER_FIELDS: Final[dict[str, Any]] = {
    one.name: one.default for one in fields(Subscriber) if one.name in _NEWER
}


def check_expect(text: str) -> str:
    """Check the answer that a webhook must give; "" = any."""
    is_given = text != ""
    text = text.strip()
    if is_given and not 1 <= len(text) <= MAX_EXPECT_CHARS:
        raise BadValue(
            f"须为1 - {MAX_EXPECT_CHARS}个字符，如 success 或 *success*",
            f"must have 1 to {MAX_EXPECT_CHARS} characters, as success or *success*",
        )
    return text


def check_name(text: str) -> str:
    """Check the name of a subscriber or a schedule."""
    if not 1 <= len(text.encode()) <= MAX_NAME_BYTES:
        raise BadValue(f"须为1 - {MAX_NAME_BYTES}字节", f"must have 1 to {MAX_NAME_BYTES} bytes")
    return text


def check_url(text: str) -> str:
    """Check a webhook's URL, which is called as it is written."""
    if found := re.search(r"[\s#\x00-\x1f\x7f]", text):
        raise BadValue(
            f"包含 {found[0]!a}，须写成百分号编码，如 %20、%23",
            f"has {found[0]!a}, which a request cannot hold: write it percent-encoded, as %20 or %23",
        )
    try:
        parts = urlsplit(text[:MAX_URL_CHARS])
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # bad brackets, or a port that is not a number
        good = False
    if not good or len(text) > MAX_URL_CHARS:
        raise BadValue(
            f"须为 http[s]://HOST[:PORT][/PATH]，最长{MAX_URL_CHARS}个字符",
            f"must be http[s]://HOST[:PORT][/PATH], at most {MAX_URL_CHARS} characters",
        )
    return text


def check_secret(text: str) -> str:
    """Check the secret that signs webhooks."""
    least, most = SECRET_BYTES
    try:
        good = text.startswith(SECRET_PREFIX) and least <= len(signing_key(text)) <= most
    except (binascii.Error, ValueError):
        good = False
    if not good:
        raise BadValue(
            f"须为 {SECRET_PREFIX} 加{least} - {most}字节的base64",
            f"must be {SECRET_PREFIX} and then {least} to {most} bytes as base64",
        )
    return text


def signing_key(secret: str) -> bytes:
    """The bytes of a secret. Raises ValueError or binascii.Error if it is not valid."""
    return b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)


def check_timeout(timeout_ms: int) -> int:
    """Check a call's time limit."""
    if not 1 <= timeout_ms <= MAX_TIMEOUT_S * 1000:
        raise BadValue(
            f"须大于0，最多{MAX_TIMEOUT_S}秒",
            f"must be more than 0 and at most {MAX_TIMEOUT_S} seconds",
        )
    return timeout_ms
