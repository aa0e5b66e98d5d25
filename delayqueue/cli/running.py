"""The verb `serve`."""

from argparse import Namespace

import uvloop

from delayqueue.cli.verb import DONE
from delayqueue.config.config import Config
from delayqueue.server.serve import serve as serving


def serve(config: Config, _asked: Namespace) -> int:
    """Run the server."""
    uvloop.run(serving(config))
    return DONE
