"""The verb `rebalance`: changes the number of buckets, while the servers wait."""

import asyncio
import time
from argparse import Namespace
from typing import Final

import uvloop

from delayqueue.cli.subcommand import DONE, UNREACHABLE, complain, say
from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError
from delayqueue.engine.rebalance import Rebalance
from delayqueue.errors import Unavailable
from delayqueue.server.store_opening import build_store, join_servers
from delayqueue.store.change import AnotherChange
from delayqueue.store.layout import check_layout
from delayqueue.tasks import TaskGroup

REPORT_S: Final = 2.0
SAFE: Final = "nothing is lost, but the servers wait: run it again to continue"
UNCHANGED: Final = "nothing was changed: run it again"


def rebalance(config: Config, asked: Namespace) -> int:
    """Change the number of buckets and move every job to its bucket. Raises StartupError if that cannot begin."""
    try:
        return uvloop.run(_rebalance(config, asked.buckets))
    except AnotherChange:
        raise StartupError(
            "somebody else is changing the number of buckets: run it again"
        ) from None


async def _rebalance(config: Config, size: int) -> int:
    async with join_servers(config) as servers:
        layout = (await check_layout(servers, config)).layout
        work = Rebalance(build_store(servers, config, layout), size)
        began = time.monotonic()
        async with TaskGroup() as group:
            group.create_task(_report(work), "report")
            group.create_task(servers.watch(), "servers of the store")
            try:
                await work.run()
            except Unavailable as error:
                state = SAFE if work.is_begun else UNCHANGED
                return complain([f"{error.text.en}; {state}"], UNREACHABLE)
    say(f"moved {work.moved} jobs in {time.monotonic() - began:.1f} s")
    if size != config.bucket_size:
        say(f"set bucket_size = {size} in the servers' settings")
    return DONE


async def _report(work: Rebalance) -> None:
    """Report progress now and then."""
    while True:
        await asyncio.sleep(REPORT_S)
        if work.is_begun:
            say(f"{work.percent} % done: moved {work.moved} jobs; the servers wait")
