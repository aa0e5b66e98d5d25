"""The verbs `serve` and `check`."""

import sys
from argparse import Namespace

import uvloop

from delayqueue.cli.verb import DONE
from delayqueue.config import Config
from delayqueue.delivery.callables import load_all
from delayqueue.sections import Sections
from delayqueue.server import open_shards
from delayqueue.server import serve as serving
from delayqueue.store.durability import check_durability
from delayqueue.store.health import durability_warnings
from delayqueue.store.layout import check_layout, layout_warnings
from delayqueue.web.auth import Guard
from delayqueue.web.tls import Tls


def serve(config: Config, _asked: Namespace) -> int:
    """Run the server."""
    uvloop.run(serving(config))
    return DONE


def check(config: Config, _asked: Namespace) -> int:
    """Go through a start, but for listening. A warning is no reason not to start."""
    Guard.of(config)
    Tls.of(config)
    load_all((config.sections or Sections()).subscribers)
    sys.stdout.write("ok: settings\n")
    warnings = uvloop.run(_try_store(config))
    sys.stdout.write("ok: store\n")
    for warning in warnings:
        sys.stdout.write(f"warning: {warning}\n")
    return DONE


async def _try_store(config: Config) -> list[str]:
    async with open_shards(config) as (shards, _):
        await check_durability(shards, config)
        layout = await check_layout(shards, config)
        return layout_warnings(layout, config) + await durability_warnings(shards)
