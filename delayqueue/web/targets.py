"""What the server calls: fields that a subscriber and a job's call have in common, and the call."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field

from delayqueue.domain import call as call_rules
from delayqueue.domain import subscriber as rules
from delayqueue.domain.call import Call
from delayqueue.domain.retry import duration_ms
from delayqueue.domain.subscriber import Method
from delayqueue.errors import BadValue, Forbidden, Invalid
from delayqueue.web.api import Api
from delayqueue.web.fields import Number, Validate, one_of, optional
from delayqueue.web.requests import Request


def check_target(field: str, check: Callable[[str], object], url: str) -> None:
    """Raises Invalid, which names the field, for a URL that `check` refuses."""
    try:
        check(url)
    except BadValue as error:
        raise Invalid.of(f"{field} {error.text.zh}", f"{field}: {error.text.en}") from None


def check_call(api: Api, call: Call) -> None:
    """Raises Forbidden if the server makes no calls, Invalid if not to this URL."""
    if api.check_call is None:
        raise Forbidden.of(
            "此服务不发出调用（calls = no）", "call: this server makes no calls (calls = no)"
        )
    check_target("call.url", api.check_call, call.url)


def check_timeout(value_s: float) -> float:
    """Check how many seconds a call may take."""
    rules.check_timeout(duration_ms(value_s))
    return value_s


Url = Annotated[
    str,
    Validate(rules.check_url, maxLength=rules.MAX_URL_CHARS),
    Field(description="The http or https URL that is called."),
]
Timeout = Annotated[
    Number,
    Validate(check_timeout, exclusiveMinimum=0, maximum=rules.MAX_TIMEOUT_S),
    Field(description="Seconds that the whole call may take; 30 by default."),
]
Expect = Annotated[
    str,
    Validate(rules.check_expect),
    Field(
        description="What the answer must be, or contain if written as `*TEXT*`; anything by default."
    ),
]
MethodWord = Annotated[Method, one_of(*Method), Field(description="`POST` by default.")]
Headers = Annotated[
    dict[str, str],
    Validate(call_rules.check_headers, maxProperties=call_rules.MAX_HEADERS),
    Field(
        description=(
            f"At most {call_rules.MAX_HEADERS} headers and {call_rules.MAX_HEADER_BYTES} bytes; "
            "no answer repeats their values."
        )
    ),
]


CalledUrl = Annotated[
    str,
    Validate(call_rules.check_url, maxLength=rules.MAX_URL_CHARS),
    Field(description="The http or https URL that is called."),
]


class CallRequest(Request):
    """The request that the server makes when the job is due."""

    url: CalledUrl
    method: MethodWord | None = None
    headers: Headers | None = None
    timeout: Timeout | None = None
    expect: Expect | None = None
    give_up: bool | None = optional(
        "Whether to bury the job at once after 400, 401, 403, 404, 405, 410 or 422."
    )

    def call(self) -> Call:
        """The call; Call has the defaults."""
        plain = type(self).model_fields.keys() - {"timeout"}  # no unknown field, whatever its name
        given: dict[str, Any] = self.model_dump(include=plain, exclude_none=True)
        if self.timeout is not None:
            given["timeout_ms"] = duration_ms(self.timeout)
        return Call(**given)
