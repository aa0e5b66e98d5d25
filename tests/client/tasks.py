"""A worker for the tests, run as a program of its own. What its handlers do goes to the file in TRACE."""

import asyncio
import os
import random
import time

from delayqueue import Bury, Retry, Worker
from delayqueue.worker import ReservedJob

worker = Worker(os.environ["DELAYQUEUE_URL"], concurrency=int(os.environ.get("CONCURRENCY", "10")))
FAILURES = random.Random(os.getpid())


def note(*words: object) -> None:
    """One line, which a kill cannot tear."""
    with open(os.environ["TRACE"], "a", encoding="utf-8") as trace:  # noqa: PTH123
        trace.write(" ".join(map(str, words)) + "\n")


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
    if job.body == "bury":
        raise Bury("no use")
    if job.body == "retry" and job.attempt == 1:
        raise Retry(0.1, "later")
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
