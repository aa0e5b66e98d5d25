"""The verb `import`."""

import asyncio
import time
from argparse import Namespace
from collections import Counter
from typing import Final

import uvloop

from delayqueue.cli.subcommand import DONE, REFUSED, UNREACHABLE, complain, say
from delayqueue.config import values
from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError
from delayqueue.engine.importer import Importer
from delayqueue.errors import Unavailable
from delayqueue.server.store_opening import join_servers, open_store
from delayqueue.store.buckets import Buckets
from delayqueue.store.health import alarms, durability_warnings
from delayqueue.store.layout import claim_layout, data_id
from delayqueue.store.original import ASIDE, Names, Place
from delayqueue.store.original.source import (
    AnotherImport,
    Original,
    StoreAway,
    key_prefix,
    open_old,
)
from delayqueue.tasks import TaskGroup

REPORT_S: Final = 2.0
SAFE: Final = "imported jobs are safe; run the import again to continue"


def import_all(config: Config, asked: Namespace) -> int:
    """Import all jobs of an old installation, until it holds none."""
    try:
        return uvloop.run(_import_all(config, asked))
    except (Unavailable, StoreAway, AnotherImport) as error:
        return complain([f"{error}; {SAFE}"], UNREACHABLE)


async def _import_all(config: Config, asked: Namespace) -> int:
    names = Names("", *_patterns(config, asked))
    async with open_old(config, asked.source) as old, join_servers(config, may_be_new=True) as new:
        stored = await claim_layout(new, config)
        tags = Buckets(config.bucket_name, config.queue_name, stored.layout).tags
        found = [alarm.en for alarm in await alarms(new, tags)]
        for warning in found + await durability_warnings(new):
            say(f"warning: {warning}")
        prefix = await key_prefix(old, names, asked.key_prefix)
        original = Original(old, names._replace(key_prefix=prefix))
        importer = Importer(original, await open_store(new, config), await data_id(new, config))
        started_at = time.monotonic()
        async with TaskGroup() as group:
            group.create_task(_report(importer), "report")
            await importer.run()
    return _end(importer, time.monotonic() - started_at)


def _patterns(config: Config, asked: Namespace) -> tuple[str, str]:
    """The names of the old buckets and lists. Raises StartupError if they are invalid."""
    try:
        return (
            values.template("%d")(asked.bucket_name or config.bucket_name),
            values.template("%s")(asked.queue_name or config.queue_name),
        )
    except ValueError as error:
        raise StartupError(f"--bucket-name, --queue-name: {error}") from None


async def _report(importer: Importer) -> None:
    """Report progress now and then."""
    imported = 0
    while True:
        await asyncio.sleep(REPORT_S)
        total = importer.imported.total()
        line = f"{total} jobs, {(total - imported) / REPORT_S:.0f}/s: {_listed(importer.imported)}"
        if importer.waiting:
            who = "the old server works" if importer.server_runs else "somebody works"
            line += f"; {who} on {importer.waiting.total()}: {_listed(importer.waiting)}"
        say(line)
        imported = total


def _listed(counts: Counter[Place]) -> str:
    return ", ".join(f"{counts[place]} {place}" for place in Place if counts[place]) or "none yet"


def _end(importer: Importer, elapsed_s: float) -> int:
    imported = importer.imported
    say(f"imported {imported.total()} jobs in {elapsed_s:.1f} s: {_listed(imported)}")
    if importer.dropped_entries:
        say(f"dropped {importer.dropped_entries} entries of jobs that had ended")
    if importer.set_aside:
        say(f"set aside {importer.set_aside} jobs: see the hash {ASIDE} in the old store")
    complain(
        [
            f"left {jobs} jobs of topic {topic!r} in the old store: its limits (max_jobs, when_full) have no room for "
            "them, or would drop others. Raise or lift them, and run the import again"
            for topic, jobs in sorted(importer.left.items())
        ],
        REFUSED,
    )
    if importer.left:
        return REFUSED
    say("the old store holds no more jobs")
    return REFUSED if importer.set_aside else DONE
