"""Login by a reverse proxy, which authenticates its users and names them in headers.

The headers are believed from the proxy's own address alone, and refused from everywhere else. What a proxy says of the
address that it was asked from (X-Forwarded-For) is never read.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network
from typing import Final, NamedTuple, Self

from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError
from delayqueue.domain.access import EVERYBODY, EVERYWHERE, GroupRole, Role, Scope
from delayqueue.errors import Forbidden, Text, shown
from delayqueue.net.loopback import parsed
from delayqueue.web.http import HttpRequest

MAX_NAME_CHARS: Final = 256
# more addresses than this hardly belong to proxies alone: those of a /16, and of a /64
FEW: Final = {4: 2**16, 6: 2**64}
SEPARATORS: Final = re.compile("[,|]")  # Authelia's and oauth2-proxy's, and authentik's
OWN_NAMES: Final = tuple(GroupRole(role, role.value) for role in Role)


class User(NamedTuple):
    """A user whom the proxy has logged in, with the roles of the user's groups."""

    name: str
    roles: frozenset[Role]

    @property
    def who(self) -> Text:
        """How messages name the user."""
        return Text(f"用户 {self.name} ", f"user {self.name}")

    def scope(self, roles: frozenset[Role]) -> Scope:
        """All topics, at an endpoint for these roles. Raises Forbidden without such a role."""
        if self.roles.isdisjoint({Role.ADMIN, *roles}):
            own = ", ".join(sorted(self.roles))
            raise Forbidden.of(
                f"用户 {self.name} 的角色（{own}）不能使用该接口",
                f"user {self.name} has the roles {own}: they may not call this endpoint",
            )
        return EVERYWHERE


class ProxyLogins:
    """The proxies that are trusted, and how their headers are read."""

    def __init__(
        self,
        allow: tuple[IPv4Network | IPv6Network, ...],
        user_header: str,
        roles_header: str,
        groups: tuple[GroupRole, ...],
    ) -> None:
        self._allow = allow
        self._user_header = user_header
        self._roles_header = roles_header
        # as requests have their headers
        self._user_key, self._roles_key = user_header.lower(), roles_header.lower()
        self._roles: dict[str, frozenset[Role]] = defaultdict(frozenset)
        for role, group in groups:
            self._roles[group] |= {role}
        self._believes = lru_cache(1024)(self._is_allowed)

    @classmethod
    def of(cls, config: Config) -> Self | None:
        """The logins of these settings; None = nobody logs in. Raises StartupError if one of them lacks another."""
        header, allow, groups = config.proxy_user_header, config.proxy_allow, config.proxy_roles
        if not header:
            for key in ("proxy_roles_header", "proxy_roles", "proxy_allow"):
                if config.value(key):
                    raise _half(key, "needs proxy_user_header; set it, or unset this")
            return None
        if not allow:
            raise _half("proxy_user_header", "needs proxy_allow, the addresses of the proxies")
        if not config.proxy_roles_header:
            if not groups:
                raise _half(
                    "proxy_user_header", "needs proxy_roles_header, or proxy_roles = view:*"
                )
            if any(group != EVERYBODY for _, group in groups):
                raise _half("proxy_roles", "needs proxy_roles_header, except for ROLE:*")
        return cls(allow, header, config.proxy_roles_header, groups or OWN_NAMES)

    def user(self, request: HttpRequest) -> User | None:
        """Who sent this, as the proxy says; None if it says nothing.

        Raises Forbidden if somebody else says so, if it is in doubt what the proxy says, or if the user has no role.
        """
        headers, header = request.headers, self._user_header
        if self._user_key not in headers:
            if self._roles_key not in headers:
                return None
            header = self._roles_header
        if not self._believes(request.peer):
            peer = request.peer or "?"
            raise Forbidden.of(
                f"{header}：来自 {peer} 的请求不能带此请求头：该地址不在 proxy_allow 中",
                f"{header}: refused from {peer}, which is not in proxy_allow",
            )
        if header != self._user_header:
            raise Forbidden.of(
                f"{header}：缺少 {self._user_header}", f"{header}: sent without {self._user_header}"
            )
        for name in (self._user_header, self._roles_header):
            if name.lower() in request.repeated:
                raise Forbidden.of(
                    f"{name}：出现了多次；代理应当替换客户端发来的值，而不是追加",
                    f"{name}: sent more than once; let the proxy replace what clients send",
                )
        user = self._name(headers[self._user_key])
        if self._roles_key == self._user_key:
            return User(user, self._roles_of(user, [user]))
        groups = SEPARATORS.split(headers.get(self._roles_key, ""))
        return User(user, self._roles_of(user, groups))

    def _name(self, text: str) -> str:
        """Raises Forbidden unless the text can be a user's name."""
        name, header = text.strip(), self._user_header
        if not name:
            raise Forbidden.of(f"{header}：为空", f"{header}: empty")
        if len(name) > MAX_NAME_CHARS:
            raise Forbidden.of(
                f"{header}：超过 {MAX_NAME_CHARS} 个字符",
                f"{header}: longer than {MAX_NAME_CHARS} characters",
            )
        if not name.isprintable():
            raise Forbidden.of(f"{header}：不是可显示的UTF-8文本", f"{header}: not printable UTF-8")
        return name

    def _roles_of(self, user: str, groups: Sequence[str]) -> frozenset[Role]:
        """The roles of all groups together. Raises Forbidden if there is none."""
        names = {EVERYBODY, *map(str.strip, groups)}
        roles = frozenset[Role]().union(*(self._roles.get(name, ()) for name in names))
        if not roles:
            told = f"{self._roles_header}: {shown(','.join(groups))}"
            raise Forbidden.of(
                f"用户 {user} 在这里没有角色：其所属的组都没有角色（{told}）",
                f"user {user} has no role here: none of the user's groups has one ({told})",
            )
        return roles

    def _is_allowed(self, peer: str | None) -> bool:
        address = parsed(peer)
        return address is not None and any(address in network for network in self._allow)


def proxy_warnings(config: Config) -> Iterator[str]:
    """A line for each network that holds more than proxies."""
    for network in config.proxy_allow:
        if network.num_addresses > FEW[network.version]:
            yield (
                f"proxy_allow = {network}: whoever has one of these {network.num_addresses:,} addresses "
                "can claim to be any user; name the proxies alone"
            )


def _half(key: str, what: str) -> StartupError:
    return StartupError(f"{key}: {what}", key=key)
