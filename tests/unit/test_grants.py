"""How a token is written, and which topics it reaches."""

import pytest

from delayqueue.domain.access import EVERYWHERE, Grant, Role, Scope, parse_grant
from delayqueue.errors import Forbidden
from tests.scopes import SCOPES

TOKEN = "0123456789abcdef"


@pytest.mark.parametrize(
    ("text", "grant"),
    [
        (f"produce:{TOKEN}", Grant(Role.PRODUCE, TOKEN, "*")),
        (f" consume:{TOKEN} ", Grant(Role.CONSUME, TOKEN, "*")),
        (f"view:{TOKEN}", Grant(Role.VIEW, TOKEN, "*")),
        (f"admin:{TOKEN}:*", Grant(Role.ADMIN, TOKEN, "*")),
        (f"produce:{TOKEN}:orders.*", Grant(Role.PRODUCE, TOKEN, "orders.*")),
        (f"produce:{TOKEN}:a:b c", Grant(Role.PRODUCE, TOKEN, "a:b c")),
        (f"produce:{TOKEN}:订单", Grant(Role.PRODUCE, TOKEN, "订单")),
        ("produce:Az09._~+/=-Az09._~", Grant(Role.PRODUCE, "Az09._~+/=-Az09._~", "*")),
    ],
)
def test_a_grant_is_read(text: str, grant: Grant) -> None:
    assert parse_grant(text) == grant


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (TOKEN, "no role"),
        (f"root:{TOKEN}", "an unknown role"),
        (f"Admin:{TOKEN}", "another case"),
        ("admin:", "no token"),
        (f"admin:{TOKEN[1:]}", "too short"),
        (f"admin:{TOKEN}:", "no topics after the colon"),
        (f"admin:{TOKEN}:a*b", "a star within"),
        (f"admin:{TOKEN}:a**", "two stars"),
        (f"admin:{TOKEN} x", "a space within the token"),
        ("admin:пароль-пароль-пароль", "a header cannot hold it"),
    ],
)
def test_what_is_no_grant_is_refused_and_not_shown(text: str, why: str) -> None:
    with pytest.raises(ValueError, match="must be ROLE:TOKEN") as caught:
        parse_grant(text)
    assert text not in str(caught.value), why


@pytest.mark.parametrize(("entries", "topic", "allowed"), SCOPES)
def test_a_scope_reaches_its_topics_only(
    entries: tuple[str, ...], topic: str, *, allowed: bool
) -> None:
    scope = Scope.of(entries)
    assert scope.allows(topic) is allowed
    if allowed:
        scope.check([topic])
    else:
        with pytest.raises(Forbidden):
            scope.check([topic])


def test_what_concerns_all_topics_needs_a_scope_of_all() -> None:
    Scope.of(["a", "*"]).check(None)
    assert Scope.of(["a", "*"]) is EVERYWHERE
    with pytest.raises(Forbidden):
        Scope.of(["a"]).check(None)
