"""The ports that the server listens on: whether they are free, and holding them for the workers."""

import errno
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from delayqueue.config.config import Config, reached_at
from delayqueue.config.startup import StartupError
from delayqueue.config.values import Address
from delayqueue.net.listener import unusable


def check_addresses(config: Config, *, may_be_taken: bool = True) -> None:
    """Raises StartupError if an address is impossible, or both are one.

    Or in use, unless it `may_be_taken`, as it is while this server runs.
    """
    other = config.beanstalk_address
    if other and other.port and reached_at(other) == config.own_address:
        raise StartupError(
            f"beanstalk_address = {other}: bind_address is there; choose another port",
            key="beanstalk_address",
        )
    for key, address in _addresses(config).items():
        if not address.port and config.workers > 1:
            raise StartupError(
                f"{key} = {address}: each worker would listen on another port; name one", key=key
            )
        try:
            bound(address).close()
        except OSError as error:
            if error.errno != errno.EADDRINUSE or not may_be_taken:
                raise unusable(address, error, key) from error


@contextmanager
def held_ports(config: Config) -> Iterator[list[socket.socket]]:
    """The ports, held for the workers. Raises StartupError if another program has taken one meanwhile."""
    with ExitStack() as ports:
        found = []
        for key, address in _addresses(config).items():
            try:
                found.append(ports.enter_context(bound(address)))
                hold(found[-1])
            except OSError as error:
                raise unusable(address, error, key) from error
        yield found


def _addresses(config: Config) -> dict[str, Address]:
    """The addresses to listen on, by setting."""
    found = {"bind_address": config.bind_address, "beanstalk_address": config.beanstalk_address}
    return {key: address for key, address in found.items() if address is not None}


def with_free_port(config: Config) -> Config:
    """The config with a free port in place of 0, for the log and the server's name."""
    if config.bind_address.port:
        return config
    with bound(config.bind_address) as port:
        address = config.bind_address._replace(port=port.getsockname()[1])
    return replace(config, bind_address=address)


def bound(address: Address) -> socket.socket:
    """A socket that is bound there. Raises OSError if somebody listens there, or holds the port."""
    family, kind, protocol, _, place = socket.getaddrinfo(
        address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    port = socket.socket(family, kind, protocol)
    try:
        port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:  # as asyncio's listeners
            port.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        port.bind(place)
    except OSError:
        port.close()
        raise
    return port


def hold(port: socket.socket) -> None:
    """Hold a bound port for the workers until it is closed: they would share it with other programs, too.

    Raises OSError if somebody else has begun to hold it, or to listen there.
    """
    if sys.platform != "linux":  # elsewhere a socket cannot cease to listen
        return
    port.listen(0)  # of all that are bound to the port, the kernel lets one listen
    port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # which those of the workers have
    port.shutdown(socket.SHUT_RDWR)  # it stays bound, but only workers accept
