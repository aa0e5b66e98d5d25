"""A worker for the tests, run as its own program. Its handlers log what they do to the file in TRACE."""

import asyncio
import os
import random
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace

from delayqueue import Bury, Retry, Worker
from delayqueue.worker import ReservedJob

worker = Worker()
FAILURES = random.Random(os.getpid())


def note(*words: object) -> None:
    """Write one line, which a kill cannot tear."""
    with open(os.environ["TRACE"], "a", encoding="utf-8") as trace:  # noqa: PTH123
        trace.write(" ".join(map(str, words)) + "\n")


@worker.lifespan
async def shop() -> AsyncGenerator[list[str], None]:
    shipped: list[str] = []
    yield shipped
    if shipped:
        note("shipped", *shipped)


@worker.on("returns")
def ship(job: ReservedJob, shipped: list[str]) -> str:
    shipped.append(job.id)
    return "shipped"


@worker.on("poison", retry=["0s"])
def poisoned(job: ReservedJob) -> None:
    raise ValueError("always")


@worker.on("deadly", max_attempts=2)
def deadly(job: ReservedJob) -> None:
    note("deadly", job.id)
    os._exit(9)


@worker.on("too-long", timeout=0.1, retry=[])
async def too_long(job: ReservedJob) -> None:
    await asyncio.sleep(3600)


@worker.on("too-long-thread", timeout=0.1, retry=[])
def too_long_thread(job: ReservedJob) -> None:
    note("begins", job.id)
    time.sleep(float(job.body))
    note("ends", job.id)


@worker.on("invoice", order=20)
async def mail(job: ReservedJob) -> None:
    note("mail", job.id)


@worker.on("invoice", order=10)
def book(job: ReservedJob) -> None:
    note("book", job.id)


@worker.on("slow")
async def slow(job: ReservedJob) -> None:
    note("slow", job.id, job.attempt)
    await asyncio.sleep(float(job.body))
    note("slept", job.id, job.attempt)


@worker.on("slow-thread")
def slow_thread(job: ReservedJob) -> None:
    note("slow", job.id, job.attempt)
    time.sleep(float(job.body))
    note("slept", job.id, job.attempt)


@worker.on("steered")
def steered(job: ReservedJob) -> None:
    if job.body == "fail" and job.attempt == 1:
        raise KeyError("oops")
    note("steered", job.id, job.attempt)


@worker.on("random")
def at_random(job: ReservedJob) -> None:
    luck = FAILURES.random()
    if luck < 0.02:
        raise Bury("no use")
    if luck < 0.25:
        raise RuntimeError("bad luck")
    note("random", job.id)


class Timeout(BaseException):
    """Like gevent's: it is not an Exception."""


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise Timeout


MISBEHAVIOUR: dict[str, Callable[[], BaseException]] = {
    "exit": lambda: SystemExit(3),
    "interrupt": KeyboardInterrupt,
    "timeout": lambda: Timeout("too late"),
    "cancel": asyncio.CancelledError,
    "stop iteration": StopIteration,
    "file name": lambda: OSError(b"caf\xe9".decode("utf-8", "surrogateescape")),
    "unspeakable": UnspeakableError,
    "huge": lambda: ValueError("A" * 10_000_000),
    "delay": lambda: Retry(float("nan")),
}


@worker.on("misbehaves")
def misbehaves(job: ReservedJob) -> None:
    raise MISBEHAVIOUR[job.body]()


@worker.on("misbehaves-async")
async def misbehaves_async(job: ReservedJob) -> None:
    if job.body == "leave a task":
        task = asyncio.create_task(misbehaves_async(replace(job, body="exit")))
        await asyncio.sleep(0.01)
        raise LookupError(f"done: {task.done()}")
    raise MISBEHAVIOUR[job.body]()


@worker.on("hangs")
def hangs(job: ReservedJob) -> None:
    note("hangs", job.id)
    time.sleep(3600)


@worker.on("hangs-async")
async def hangs_async(job: ReservedJob) -> None:
    note("hangs", job.id)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue


@worker.on("hangs-thread")
async def hangs_in_a_thread(job: ReservedJob) -> None:
    note("hangs", job.id)
    await asyncio.to_thread(time.sleep, 3600)


@worker.on("hangs-loop")
async def hangs_loop(job: ReservedJob) -> None:
    note("hangs", job.id)
    time.sleep(3600)  # noqa: ASYNC251  # it blocks the loop
