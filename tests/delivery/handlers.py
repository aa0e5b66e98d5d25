"""Python handlers for the tests. A job's body is the path of a file; they write what they did as a line there."""

import asyncio
import threading
import time
from pathlib import Path
from typing import Final

from delayqueue.delivery.outcome import Event
from delayqueue.domain.job import Reserved

NO_FUNCTION: Final = 5


def note(job: Reserved, line: str) -> None:
    with Path(job.body).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def plain(job: Reserved) -> str:
    is_main = threading.current_thread() is threading.main_thread()
    note(job, f"plain {job.id} {job.attempt} {is_main}")
    return f"wrote {job.topic}"


async def asynchronous(job: Reserved) -> None:
    await asyncio.sleep(0.01)
    note(job, f"async {job.id}")


class Callable:
    async def __call__(self, job: Reserved) -> int:
        note(job, f"object {job.id}")
        return 5


instance = Callable()


def fails_at_first(job: Reserved) -> None:
    note(job, f"fails {job.attempt}")
    if job.attempt == 1:
        raise LookupError(f"no file for {job.id}")


def leaves(job: Reserved) -> None:
    raise SystemExit(f"leaves at {job.id}")


async def hangs(job: Reserved) -> None:
    note(job, "hangs")
    await asyncio.sleep(3600)


def blocks(job: Reserved) -> None:
    note(job, "blocks")
    time.sleep(3600)


def reads_results(job: Event) -> str:
    return ", ".join(f"{name} {result.message}" for name, result in job.results.items())
