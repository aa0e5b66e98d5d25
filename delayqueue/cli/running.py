"""The verb `serve`."""

import sys
from argparse import Namespace
from typing import Final

import uvloop

from delayqueue.cli.verb import DONE
from delayqueue.config.config import Config
from delayqueue.config.values import Address
from delayqueue.server.serve import serve as serving
from delayqueue.store.servers.data_dir import place_of

EVERY_INTERFACE: Final = ("", "0.0.0.0", "::")  # noqa: S104  # compared with, not listened on


def serve(config: Config, _asked: Namespace) -> int:
    """Run the server."""
    if config.embedded and sys.stderr.isatty():
        sys.stderr.write(_introduction(config))
    uvloop.run(serving(config))
    return DONE


def _introduction(config: Config) -> str:
    """What a person should know who has typed `delay-queue`, maybe only to see what it is."""
    host, port = config.bind_address
    address = Address("localhost" if host in EVERY_INTERFACE else host, port)
    page = f"{'https' if config.tls_cert else 'http'}://{address}/admin"
    return (
        f"Starting a delay queue server. Its jobs are in {place_of(config.data_dir)}.\n"
        f"When it says `serving on`, open {page}\n"
        "Ctrl-C stops it; delay-queue --help says what else there is.\n"
    )
