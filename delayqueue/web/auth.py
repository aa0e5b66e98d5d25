"""Access control: tokens, their roles, and how many requests each may make.

A token comes in `Authorization: Bearer TOKEN`, or as the password of `Basic`, which is what browsers can send.
"""

import asyncio
import binascii
import logging
import secrets
from base64 import b64decode
from collections.abc import Iterable
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Final

from delayqueue.config.config import Config
from delayqueue.config.files import read_limited
from delayqueue.config.startup import StartupError
from delayqueue.domain.access import EVERYWHERE, Grant, Role, Scope, parse_grant
from delayqueue.errors import Forbidden, Text, TooMany, Unauthorized
from delayqueue.web.http import HttpRequest

log = logging.getLogger(__name__)

# The roles that may call an endpoint; None = everybody. The admin role may call all.
Roles = frozenset[Role] | None

CALLERS: Final = frozenset({Role.CALL})
UNKNOWN: Final = Text("token无效", "unknown token")
WRONG_ROLE: Final = Text(
    "此token的角色不能使用该接口", "this token's role may not call this endpoint"
)
TOO_FAST: Final = Text(
    "此token请求过多，请稍后再试", "this token's requests exceed token_rate; slow down"
)
BURST_S: Final = 1.0  # requests not made in this time may be made at once


class RateLimiter:
    """Allows `rate` requests a second; 0 = any number."""

    def __init__(self, rate: int) -> None:
        self._interval_s = 1 / rate if rate else 0.0
        self._free_at = 0.0  # loop time up to which requests are paid for

    def check(self) -> None:
        """Count one request. Raises TooMany if it comes too early."""
        if not self._interval_s:
            return
        now = asyncio.get_running_loop().time()
        paid_until = max(self._free_at, now) + self._interval_s
        early_s = paid_until - now - max(BURST_S, self._interval_s)
        if early_s > 1e-6:  # the sum of many intervals is not exact
            raise TooMany(TOO_FAST, retry_after_s=early_s)
        self._free_at = paid_until


class Principal:
    """A token in force: what it grants, and how many requests it may make."""

    def __init__(self, limiter: RateLimiter) -> None:
        self.limiter = limiter
        self._topics: dict[Role, list[str]] = {}
        self._scopes: dict[Roles, Scope] = {}

    @property
    def roles(self) -> frozenset[Role]:
        """The roles of a token."""
        return frozenset(self._topics)

    def add(self, grant: Grant) -> None:
        """Add a grant to those of the token."""
        self._topics.setdefault(grant.role, []).append(grant.topics)

    def scope(self, roles: frozenset[Role]) -> Scope:
        """The topics that the token may reach at an endpoint for these roles. Raises Forbidden without such a role."""
        scope = self._scopes.get(roles)
        if scope is None:
            granted = [self._topics.get(role, ()) for role in {Role.ADMIN, *roles}]
            scope = Scope.of(topics for each in granted for topics in each)
            self._scopes[roles] = scope
        if not scope.entries:
            raise Forbidden(WRONG_ROLE)
        return scope


class Authenticator:
    """The tokens in force."""

    def __init__(self, grants: Iterable[Grant], rate: int) -> None:
        """`rate`: how many requests a second each token may make; 0 = any number."""
        self._key = secrets.token_bytes(32)
        self._principals: dict[bytes, Principal] = {}
        self._rate = rate
        self.asks = False  # whether a token is needed at all
        self.revision = 0  # grows whenever tokens take the place of others
        self.use(grants, rate)

    @classmethod
    def of(cls, config: Config) -> "Authenticator":
        """The authenticator for these settings. Raises StartupError if their file cannot be read."""
        return cls(all_grants(config), config.token_rate)

    def use(self, grants: Iterable[Grant], rate: int) -> None:
        """Replace the present tokens by these."""
        former = self._principals if rate == self._rate else {}
        principals: dict[bytes, Principal] = {}
        for grant in grants:
            digest = self._digest(grant.token)
            if digest not in principals:
                known = former.get(digest)
                principals[digest] = Principal(known.limiter if known else RateLimiter(rate))
            principals[digest].add(grant)
        self._rate = rate
        self._principals = principals
        self.asks = bool(principals)
        self.revision += 1

    def admit(self, request: HttpRequest, roles: Roles) -> Scope:
        """The topics that this client may reach. Raises Unauthorized, Forbidden or TooMany if it is refused."""
        if roles is None or not self._principals:
            return EVERYWHERE
        principal = self._find(token_of(request))
        principal.limiter.check()
        return principal.scope(roles)

    def check_again(self, request: HttpRequest, roles: Roles, topics: Iterable[str]) -> None:
        """Raises Unauthorized or Forbidden if a client that was admitted may no longer reach these topics."""
        if roles is not None and self._principals:
            self._find(token_of(request)).scope(roles).check(topics)

    def check_caller(self, request: HttpRequest, topic: str) -> None:
        """Raises Forbidden if a client that was admitted may not push a job of the topic with a call."""
        if not self._principals:
            return
        try:
            self._find(token_of(request)).scope(CALLERS).check((topic,))
        except Forbidden:
            raise Forbidden.of(
                f"call：此token没有topic {topic} 的call角色",
                f"call: this token has no role call for topic {topic}",
            ) from None

    def roles(self, request: HttpRequest) -> frozenset[Role]:
        """The roles of this client; all if no tokens are set. Raises Unauthorized if it has none."""
        if not self._principals:
            return frozenset(Role)
        return self._find(token_of(request)).roles

    def name_of(self, request: HttpRequest) -> str:
        """How the log tells clients apart: the token's roles, and too little of its SHA-256 to guess it."""
        if not self._principals:
            return "anybody"
        token = token_of(request)
        try:
            roles = "+".join(sorted(self._find(token).roles))
        except Unauthorized:  # the token is gone by now
            roles = "unknown"
        return f"{roles} token {sha256(token.encode('utf-8', 'surrogateescape')).hexdigest()[:4]}"

    def _find(self, token: str) -> Principal:
        """The token in force. Takes a time that reveals nothing: digests with a secret key are compared."""
        found = self._principals.get(self._digest(token))
        if found is None:
            raise Unauthorized(UNKNOWN if token else None)
        return found

    def _digest(self, token: str) -> bytes:
        return blake2b(token.encode("utf-8", "surrogateescape"), key=self._key).digest()


def token_of(request: HttpRequest) -> str:
    """The token in a request's Authorization header; "" if there is none."""
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() != "basic":
        return ""
    try:
        return b64decode(value, validate=True).decode().partition(":")[2]
    except (binascii.Error, ValueError):
        return ""


def all_grants(config: Config) -> list[Grant]:
    """What all tokens grant, those of the settings and those of their file. Raises StartupError as read_tokens()."""
    file = config.auth_tokens_file
    return [*config.auth_tokens, *(read_tokens(file) if file else ())]


def read_tokens(path: Path) -> Iterable[Grant]:
    """The grants in a file: one per line; empty lines and those that begin with # or ; are skipped.

    Raises StartupError if one is invalid; the message names file and line, and does not show the token.
    """
    try:
        lines = read_limited(path).decode("utf-8-sig").splitlines()
    except OSError as error:
        raise _unusable(path, f"{error.strerror}; correct it") from None
    except UnicodeDecodeError:
        raise _unusable(path, "is not UTF-8: save it as UTF-8") from None
    grants = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip()[0] in "#;":
            continue
        try:
            grants.append(parse_grant(line))
        except ValueError as error:
            raise StartupError(f"{path}:{number}: {error}") from None
    if not grants:
        raise _unusable(path, "has no token; add one, or unset it")
    return grants


def _unusable(path: Path, why: str) -> StartupError:
    return StartupError(f"auth_tokens_file = {path}: {why}", key="auth_tokens_file")
