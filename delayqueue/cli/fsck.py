"""The verb `fsck`: checks the store for damage while servers use it."""

import time
from argparse import Namespace
from collections import Counter
from typing import Any, Final

import uvloop

from delayqueue.cli.output import as_json
from delayqueue.cli.subcommand import DONE, REFUSED, say
from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError
from delayqueue.domain import damage
from delayqueue.engine.fsck import Report, examine
from delayqueue.errors import Unavailable
from delayqueue.log import one_line
from delayqueue.server.store_opening import join_servers, open_store
from delayqueue.store.types import Finding

MOST_SHOWN: Final = 100  # findings; the others are only counted


def fsck(config: Config, asked: Namespace) -> int:
    """Check everything, print what is found. Raises StartupError if that is not possible."""
    listing = _Listing(as_json=bool(asked.json))
    started = time.monotonic()
    try:
        report = uvloop.run(_examine(config, listing, repair=bool(asked.repair)))
    except Unavailable:
        raise StartupError("the store does not answer, or refuses: try again") from None
    say(listing.summary(report, time.monotonic() - started))
    return REFUSED if report.left else DONE


async def _examine(config: Config, listing: "_Listing", *, repair: bool) -> Report:
    async with join_servers(config) as servers:
        store = await open_store(servers, config)
        return await examine(store, listing.add, repair=repair)


class _Listing:
    """The findings: the first ones as text, at once, or collected for JSON at the end."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._findings: list[dict[str, Any]] = []
        self._count = 0

    def add(self, bucket: int, finding: Finding) -> None:
        self._count += 1
        if self._count > MOST_SHOWN:
            return
        text = damage.sentence(finding.kind, finding.name, finding.id)
        if not self._as_json:
            cure = "its entry is removed" if finding.kind == damage.LOST else "mended"
            mended = f": {cure}" if finding.repaired else ""
            say(one_line(f"bucket {bucket + 1}: {finding.kind}: {text}{mended}"))
        kind, name, job_id, repaired = finding
        shown = {"bucket": bucket + 1, "kind": kind, "name": name, "id": job_id}
        self._findings.append(shown | {"mended": repaired, "text": text})

    def summary(self, report: Report, seconds: float) -> str:
        if self._as_json:
            data = {
                "clean": not report.left,
                "looked": report.looked,
                "seconds": round(seconds, 1),
                "found": report.found,
                "mended": report.repaired,
                "left": report.left,
                "lost": report.lost,
                "findings": self._findings,
            }
            return as_json(data)
        lines = [f"and {self._count - MOST_SHOWN} more"] if self._count > MOST_SHOWN else []
        lines.append(f"looked at {report.looked} entries in {seconds:.1f} s")
        counts = {"found": report.found, "mended": report.repaired, "left": report.left}
        lines += [f"{word}: {_counted(count)}" for word, count in counts.items() if count]
        if report.lost:
            lines.append(f"lost jobs: {report.lost}")
        return "\n".join(lines if report.found else [*lines, "all is whole"])


def _counted(count: Counter[str]) -> str:
    kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(count.items()))
    return f"{count.total()} ({kinds})"
