"""Access control: tokens, their roles, and how many requests each may make; users whom a proxy has logged in.

A token comes in `Authorization: Bearer TOKEN`, or as the password of `Basic`, which is what browsers can send. Beside a
login by the proxy it does not count: proxies pass on what they were sent in that header, or put something into it.
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
from delayqueue.web.checks import require_this_machine
from delayqueue.web.http import ADMIN_PAGE, HttpRequest
from delayqueue.web.proxy_login import ProxyLogins, User

log = logging.getLogger(__name__)

# The roles that may call an endpoint; None = everybody. The admin role may call all.
Roles = frozenset[Role] | None

CALLERS: Final = frozenset({Role.CALL})
UNKNOWN: Final = Text("token无效", "unknown token")
TOKEN_OR_LOGIN: Final = Text(
    "需要有效的token，或经由代理登录", "a valid token is needed, or a login by the proxy"
)
WRONG_ROLE: Final = Text(
    "此token的角色不能使用该接口", "this token's role may not call this endpoint"
)
TOO_FAST: Final = Text(
    "此token请求过多（token_rate），请稍后再试",
    "this token's requests exceed token_rate; slow down",
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

    who: Final = Text("此token", "this token")

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
    """The tokens in force, and the logins: none at first."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._principals: dict[bytes, Principal] = {}
        self._rate = 0
        self._logins: ProxyLogins | None = None
        self.requires_auth = False  # whether clients have to say who they are
        self.is_protected = False  # whether clients on this machine only are served
        self.revision = 0  # grows whenever tokens and logins take the place of others

    def use(
        self,
        grants: Iterable[Grant],
        rate: int,
        logins: ProxyLogins | None = None,
        *,
        protected_mode: bool = False,
    ) -> None:
        """Replace the present tokens and logins by these.

        `rate`: how many requests a second each token may make; 0 = any number.
        """
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
        self._logins = logins
        self.requires_auth = bool(principals) or logins is not None
        self.is_protected = protected_mode and not self.requires_auth
        self.revision += 1

    def admit(self, request: HttpRequest, roles: Roles) -> Scope:
        """The topics that this client may reach. Raises Unauthorized, Forbidden or TooMany if it is refused."""
        if roles is None or not self.requires_auth:
            return EVERYWHERE
        found = self._find(request)
        if isinstance(found, Principal):
            found.limiter.check()
        return found.scope(roles)

    def check_again(self, request: HttpRequest, roles: Roles, topics: Iterable[str]) -> None:
        """Raises Unauthorized or Forbidden if a client that was admitted may no longer reach these topics."""
        if self.is_protected:
            require_this_machine(request)
        if roles is not None and self.requires_auth:
            self._find(request).scope(roles).check(topics)

    def check_caller(self, request: HttpRequest, topic: str) -> None:
        """Raises Forbidden if a client that was admitted may not push a job of the topic with a call."""
        if not self.requires_auth:
            return
        found = self._find(request)
        try:
            found.scope(CALLERS).check((topic,))
        except Forbidden:
            raise Forbidden.of(
                f"call：{found.who.zh}没有topic {topic} 的call角色",
                f"call: {found.who.en} has no role call for topic {topic}",
            ) from None

    def access(self, request: HttpRequest) -> User:
        """Name and roles of this client; a token has no name. All roles if nobody has to say who they are.

        Raises Unauthorized or Forbidden if it has none.
        """
        if not self.requires_auth:
            return User("", frozenset(Role))
        found = self._find(request)
        return found if isinstance(found, User) else User("", found.roles)

    def name_of(self, request: HttpRequest) -> str:
        """How the log tells clients apart: by their roles, and a user's name.

        Of a token, it has too little of the SHA-256 to guess it.
        """
        if not self.requires_auth:
            return "anybody"
        try:
            name, found = self.access(request)
            roles = "+".join(sorted(found))
        except Unauthorized:  # the token is gone by now
            name, roles = "", "unknown"
        except Forbidden:
            return "unknown user"  # the login counts no longer
        if name:
            return f"{roles} user {name}"
        token = token_of(request).encode("utf-8", "surrogateescape")
        return f"{roles} token {sha256(token).hexdigest()[:4]}"

    def _find(self, request: HttpRequest) -> Principal | User:
        """The user whom the proxy has logged in, else the token in force.

        Takes a time that reveals nothing: digests with a secret key are compared.
        """
        if self._logins is not None and (user := self._logins.user(request)) is not None:
            return user
        token = token_of(request)
        found = self._principals.get(self._digest(token))
        if found is None:
            needed = TOKEN_OR_LOGIN if self._logins is not None else None
            raise Unauthorized(
                UNKNOWN if token else needed, page_asks=ADMIN_PAGE in request.headers
            )
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
    """The grants of all tokens, in the settings and in their file. Raises StartupError as read_tokens()."""
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
