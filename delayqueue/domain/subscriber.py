"""A subscriber: whom the server calls with the due jobs of a topic. Pure.

The checks take what somebody wrote and return what it means; they raise BadValue.
"""

import binascii
import json
import re
from base64 import b64decode
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Final, NamedTuple, Self
from urllib.parse import urlsplit

from delayqueue.domain import retry
from delayqueue.domain.choice import check_choice
from delayqueue.errors import BadValue

MAX_NAME_BYTES = 128
MAX_ORDER = 1_000_000
MAX_TIMEOUT_S = 300
MAX_CONCURRENCY = 1000
MAX_URL_CHARS = 2048
MAX_EXPECT_CHARS = 256
SECRET_BYTES = (24, 64)  # by the Standard Webhooks specification

SECRET_PREFIX = "whsec_"  # noqa: S105  # no secret


class OnFailure(StrEnum):
    """What a subscriber that has failed for good means for its job."""

    BURY = "bury"  # it is kept for a person
    CONTINUE = "continue"  # nothing: it ends as finished when all others are done, with the message


class Payload(StrEnum):
    """What a webhook is sent."""

    BODY = "body"  # the job's body as it is
    EVENT = "event"  # a JSON object: the job, and what the subscribers before said


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscriber:
    """It has either a `url` that is POSTed to, or a `handler`, a Python callable as "package.module:callable"."""

    name: str
    topic: str
    order: int = (
        0  # the subscribers of a topic are called in this order, those of the same order by name
    )
    url: str = ""
    handler: str = ""
    timeout_ms: int = 30_000  # of one call
    # for jobs without a schedule of their own; as those who send webhooks for a living do it
    retry_ms: tuple[int, ...] = retry.explicit(("5s", "5m", "30m", "2h", "5h", "10h"))
    concurrency: int = 10  # calls at once, for each server process
    secret: str = field(default="", repr=False)  # "" = webhooks are not signed
    declared: bool = False  # in a config file, not at run time
    expect: str = ""  # what the answer must be, or hold as in "*success*"; "" = any
    on_failure: OnFailure = OnFailure.BURY
    payload: Payload = Payload.BODY

    @classmethod
    def read(cls, definition: str) -> Self:
        """The subscriber that `definition` wrote, by a newer version too. Raises ValueError if it is none."""
        try:
            found = json.loads(definition)
            known = {field.name: found[field.name] for field in fields(cls) if field.name in found}
            known["retry_ms"] = tuple(found["retry_ms"])
            known["on_failure"] = OnFailure(known.get("on_failure", OnFailure.BURY))
            known["payload"] = Payload(known.get("payload", Payload.BODY))
            return cls(**known)
        except (KeyError, TypeError) as error:
            raise ValueError(f"no definition of a subscriber: {error}") from None

    @property
    def definition(self) -> str:
        """What stands in the store. Newer fields are left out where they say nothing: so it was written before them."""
        written = asdict(self)
        for name, default in NEWER_FIELDS.items():
            if written[name] == default:
                del written[name]
        return json.dumps(written, ensure_ascii=False)

    def is_expected(self, said: str) -> bool:
        """Whether this is what the subscriber is to answer."""
        wanted = self.expect
        if len(wanted) > 2 and wanted[0] == wanted[-1] == "*":
            return wanted[1:-1] in said
        return not wanted or said == wanted


class Trial(NamedTuple):
    """What became of a call with a made-up job: the HTTP status, 0 where no answer came, and what was said."""

    succeeded: bool
    status: int
    message: str
    took_ms: int


NEWER_FIELDS: Final = {"expect": "", "on_failure": OnFailure.BURY, "payload": Payload.BODY}


def check_expect(text: str) -> str:
    """What a webhook is to answer."""
    text = text.strip()
    if not 1 <= len(text) <= MAX_EXPECT_CHARS:
        raise BadValue(
            f"须为1 - {MAX_EXPECT_CHARS}个字符, 如 success 或 *success*",
            f"must have 1 to {MAX_EXPECT_CHARS} characters, as success or *success*",
        )
    return text


def check_on_failure(text: str) -> OnFailure:
    """What it means if a subscriber has failed for good."""
    return check_choice(OnFailure, text)


def check_payload(text: str) -> Payload:
    """What a webhook is sent."""
    return check_choice(Payload, text)


def check_name(text: str) -> str:
    """The name of a subscriber or a schedule."""
    if not 1 <= len(text.encode()) <= MAX_NAME_BYTES:
        raise BadValue(f"须为1 - {MAX_NAME_BYTES}字节", f"must have 1 to {MAX_NAME_BYTES} bytes")
    return text


def check_url(text: str) -> str:
    """Where webhooks go."""
    try:
        parts = urlsplit(text[:MAX_URL_CHARS])
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets, or a port that is none
        good = False
    if not good or len(text) > MAX_URL_CHARS or re.search(r"[\s#\x00-\x1f\x7f]", text):
        raise BadValue(
            f"须为 http[s]://HOST[:PORT][/PATH], 最长{MAX_URL_CHARS}个字符",
            f"must be http[s]://HOST[:PORT][/PATH], at most {MAX_URL_CHARS} characters",
        )
    return text


def check_handler(text: str) -> str:
    """Where a Python handler is to be found."""
    module, colon, name = text.partition(":")
    parts = [*module.split("."), *name.split(".")]
    if not (colon and all(part.isidentifier() for part in parts)):
        raise BadValue("须为 package.module:callable", "must be package.module:callable")
    return text


def check_secret(text: str) -> str:
    """The secret that webhooks are signed with."""
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
    """The bytes of a secret. Raises ValueError or binascii.Error if it is none."""
    return b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)


def check_timeout(timeout_ms: int) -> int:
    """How long a call may take."""
    if not 1 <= timeout_ms <= MAX_TIMEOUT_S * 1000:
        raise BadValue(
            f"须大于0, 最多{MAX_TIMEOUT_S}秒",
            f"must be more than 0 and at most {MAX_TIMEOUT_S} seconds",
        )
    return timeout_ms
