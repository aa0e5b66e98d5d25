"""The verb `serve`."""

import sys
from argparse import Namespace

import uvloop

from delayqueue.cli.subcommand import DONE
from delayqueue.config.config import Config
from delayqueue.server.open_files import raise_limit
from delayqueue.server.serve import serve as serving
from delayqueue.store.embedded import place_of


def serve(config: Config, _asked: Namespace) -> int:
    """Run the server."""
    if config.embedded and sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(_introduction(config))
    raise_limit()  # first: a loop needs files, too
    uvloop.run(serving(config))
    return DONE


def _introduction(config: Config) -> str:
    """The first lines for a person who has typed `delay-queue`, maybe only to see what it is."""
    return (
        f"Starting a delay queue server. Its jobs are in {place_of(config.data_dir)}.\n"
        f"When it says `serving on`, open {config.own_url}/admin\n"
        "Ctrl-C stops it; delay-queue --help says what else there is.\n"
    )
