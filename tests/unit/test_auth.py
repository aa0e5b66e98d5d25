"""Tokens in force."""

import sys
from base64 import b64encode
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Final

import pytest

from delayqueue.domain.access import Role, parse_grant
from delayqueue.errors import Forbidden, TooMany, Unauthorized
from delayqueue.web.auth import Authenticator
from delayqueue.web.http import HttpRequest

PRODUCERS: Final = frozenset({Role.PRODUCE})
CONSUMERS: Final = frozenset({Role.CONSUME})


def authenticator(tokens: int) -> Authenticator:
    guard = Authenticator()
    guard.use([parse_grant(f"produce:token-{n:016}") for n in range(tokens)], 0)
    return guard


def request(number: int) -> HttpRequest:
    return HttpRequest("POST", "/push", {"authorization": f"Bearer token-{number:016}"}, None)


def calls_of(work: Callable[[], object]) -> int:
    """How many functions, of Python and of C, the work calls."""
    calls = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        with suppress(Unauthorized):
            work()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("number", [0, 5000], ids=["a token", "no token"])
def test_a_request_costs_the_same_however_many_tokens_there_are(number: int) -> None:
    one, many = authenticator(1), authenticator(1000)
    cost = calls_of(lambda: one.admit(request(number), PRODUCERS))
    assert calls_of(lambda: many.admit(request(number), PRODUCERS)) == cost


def basic(password: str) -> str:
    return "Basic " + b64encode(f"any:{password}".encode()).decode()


KNOWN: Final = f"token-{0:016}"
OTHER: Final = f"token-{1:016}"


@pytest.mark.parametrize("header", [f"Bearer {KNOWN}", f"bearer   {KNOWN} ", basic(KNOWN)])
def test_a_token_comes_in_an_authorization_header(header: str) -> None:
    asked = HttpRequest("POST", "/push", {"authorization": header}, None)
    assert authenticator(3).admit(asked, PRODUCERS).allows("t")


@pytest.mark.parametrize(
    "header",
    [
        *(KNOWN, f"Token {KNOWN}", "Bearer", "Bearer ", f"Bearer {KNOWN}0", f"Bearer {KNOWN[:-1]}"),
        *(f"Bearer {KNOWN.upper()}", f"Bearer produce:{KNOWN}", f"Bearer {KNOWN},{OTHER}"),
        *("Bearer токен", "Bearer ſoken", "Bearer \udcff", "Bearer " + "x" * 7000, "Basic !!"),
        *("Basic /////w==", basic(""), basic("unknown-0123456789")),
    ],
)
def test_only_a_whole_token_is_known(header: str) -> None:
    asked = HttpRequest("POST", "/push", {"authorization": header}, None)
    with pytest.raises(Unauthorized):
        authenticator(3).admit(asked, PRODUCERS)


def test_who_waits_while_protected_mode_is_switched_on_is_asked_again() -> None:
    guard = Authenticator()
    peers = {"127.0.0.1": False, "::1": False, "192.0.2.7": True, None: True}
    for peer, refused in peers.items():
        asked = HttpRequest("POST", "/pop", {}, peer)
        guard.use([], 0, protected_mode=False)
        guard.check_again(asked, CONSUMERS, ["t"])
        guard.use([], 0, protected_mode=True)
        with pytest.raises(Forbidden) if refused else nullcontext():
            guard.check_again(asked, CONSUMERS, ["t"])
    with_tokens = authenticator(1)
    with_tokens.use([parse_grant(f"consume:{KNOWN}")], 0, protected_mode=True)
    asked = HttpRequest("POST", "/pop", {"authorization": f"Bearer {KNOWN}"}, "192.0.2.7")
    with_tokens.check_again(asked, CONSUMERS, ["t"])


async def test_tokens_that_are_read_anew_may_not_make_their_requests_again() -> None:
    grants = [parse_grant(f"produce:token-{0:016}")]
    tokens = Authenticator()
    tokens.use(grants, 2)
    for _ in range(2):
        tokens.admit(request(0), PRODUCERS)
    tokens.use(grants, 2)
    with pytest.raises(TooMany):
        tokens.admit(request(0), PRODUCERS)
    tokens.use(grants, 3)  # another rate counts from now on
    tokens.admit(request(0), PRODUCERS)
