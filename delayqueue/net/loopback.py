"""The addresses of clients, and which of them are on this machine."""

import ipaddress
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address


def parsed(address: str | None) -> IPv4Address | IPv6Address | None:
    """A peer's address; an IPv4 one as such, also of a socket for both. None if the peer has none."""
    if not address:
        return None
    found = ipaddress.ip_address(address)
    mapped: IPv4Address | None = getattr(found, "ipv4_mapped", None)
    return mapped or found


@lru_cache(1024)
def is_loopback(address: str | None) -> bool:
    """Whether a peer's address is a loopback address of this host; a peer without an address counts as remote."""
    found = parsed(address)
    return found is not None and found.is_loopback
