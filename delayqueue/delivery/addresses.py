"""Which addresses webhooks may reach: public ones, and those that `webhook_allow` lists.

The check applies to the address that a socket is about to connect to, after all resolving, so a name that changes its
answer between a check and a connection gains nothing.
"""

import errno
import socket
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache, partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, Final

from aiohttp.abc import AbstractResolver, ResolveResult

from delayqueue.delivery.urls import host_of
from delayqueue.errors import BadValue
from delayqueue.tasks import SingleFlight
from delayqueue.threads import Threads

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Target = tuple[int, int, int, str, tuple[Any, ...]]
Addresses = list[tuple[Any, ...]]  # as getaddrinfo returns them

CACHED: Final = 1024  # hosts whose addresses are not worked out again at each call
SHARED_S: Final = 10.0  # after which a lookup that hangs is left to itself

# By the IANA registries of special-purpose addresses, and what clouds use for themselves. Not `is_global`, which
# differs between releases of Python.
_SPECIAL_V4: Final = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this host
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by the customers of a provider (CGNAT)
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # public by number, but in Azure it is the platform's own, for its machines only
        "169.254.0.0/16",  # link-local, and the metadata of clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
_PUBLIC_V6: Final = IPv6Network("2000::/3")  # the rest is loopback, local, multicast or unassigned
_SPECIAL_V6: Final = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, Teredo
        "2001:db8::/32",  # documentation
        "3fff::/20",  # documentation
    )
)
_MAPPED: Final = IPv6Network("::ffff:0:0/96")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_6TO4: Final = IPv6Network("2002::/16")


@lru_cache(maxsize=CACHED)
def is_public(address: Address) -> bool:
    """Whether the address belongs to the public internet; if it wraps an IPv4 address, whether that one does."""
    inner = unwrapped(address)
    if isinstance(inner, IPv4Address):
        return not any(inner in network for network in _SPECIAL_V4)
    return inner in _PUBLIC_V6 and not any(inner in network for network in _SPECIAL_V6)


def unwrapped(address: Address) -> Address:
    """The IPv4 address that an IPv6 address maps or translates; otherwise the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address in _MAPPED or address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    if address in _6TO4:
        return IPv4Address(int(address) >> 80 & 0xFFFF_FFFF)
    return address


class AddressGuard:
    """Knows the addresses that webhooks may reach: public ones, and those that the setting lists."""

    def __init__(self, allowed: Iterable[Network], setting: str = "webhook_allow") -> None:
        self._allowed = tuple(allowed)
        self._setting = setting

    def permits(self, address: Address) -> bool:
        """Whether webhooks may reach the address."""
        if is_public(address):
            return True
        forms = {address, unwrapped(address)}
        return any(form in network for form in forms for network in self._allowed)

    def check_url(self, url: str) -> str:
        """Check a URL. Raises ValueError if its host is an address that webhooks may not reach, or it has no host.

        A name is looked up at each call.
        """
        self.check_host(host_of(url))
        return url

    def check_host(self, host: str) -> None:
        """Check the host of a URL. Raises ValueError if it is an address that webhooks may not reach."""
        address = literal(host)
        if address is not None:
            self._check(address, str(address))

    def check_target(self, target: Target) -> None:
        """Check a target, as getaddrinfo describes it. Raises PermissionError if it is forbidden."""
        host = str(target[4][0])
        try:
            self._check(ip_address(host), host)
        except ValueError as error:
            raise PermissionError(errno.EACCES, str(error)) from None

    def _check(self, address: Address, shown: str) -> None:
        if not self.permits(address):
            raise BadValue(
                f"{shown} 不是公网地址，{self._setting} 也未列出",
                f"{shown} is not a public address and {self._setting} does not list it",
            )


@lru_cache(maxsize=CACHED)
def literal(host: str) -> Address | None:
    """The address if a URL has one instead of a name, in any notation of the system: 127.1 and 0x7f.1, too."""
    with suppress(ValueError):
        return ip_address(host)
    with suppress(OSError):
        return IPv4Address(socket.inet_aton(host))
    return None


class Resolver(AbstractResolver):
    """Resolves names in threads: a name server that hangs does not delay others.

    Concurrent lookups of one name share an answer, so hanging threads do not become many.
    """

    def __init__(self) -> None:
        self._threads = Threads("resolver")
        self._lookups = SingleFlight[Addresses](SHARED_S)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses of a name. Raises OSError if it has none."""
        look = partial(socket.getaddrinfo, host, port, family, socket.SOCK_STREAM)
        try:
            found = await self._lookups.do(
                (host, port, int(family)), partial(self._threads.run, look)
            )
        except RuntimeError as error:  # no thread can be started
            raise OSError(errno.EAGAIN, str(error)) from error
        return [
            ResolveResult(
                hostname=host,
                host=str(place[0]),
                port=int(place[1]),
                family=found_family,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for found_family, _, protocol, _, place in found
        ]

    async def close(self) -> None:
        """Nothing to close: lookups end with the loop."""
