"""Which clients are on this machine."""

import ipaddress
from functools import lru_cache


@lru_cache(1024)
def is_loopback(address: str | None) -> bool:
    """Whether a peer's address is a loopback address of this host; a peer without an address counts as remote."""
    if not address:
        return False
    parsed = ipaddress.ip_address(address)
    mapped = getattr(parsed, "ipv4_mapped", None)
    return (mapped or parsed).is_loopback
