"""The verb `serve`."""

from argparse import Namespace

import uvloop

from delayqueue.cli.verb import DONE
from delayqueue.config import Config
from delayqueue.server import serve as serving


def serve(config: Config, _asked: Namespace) -> int:
    """Run the server."""
    uvloop.run(serving(config))
    return DONE
