"""Puts jobs under numbers of their own."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from delayqueue.beanstalk.answers import NOT_FOUND, Answer, Pending, answer_to
from delayqueue.beanstalk.commands import OUT_OF_MEMORY
from delayqueue.beanstalk.ids import BLOCK
from delayqueue.beanstalk.server import BeanstalkServer
from delayqueue.domain.job import MAX_DELAY_S, IfExists, Job
from delayqueue.errors import Code, Unavailable
from delayqueue.store.types import DONE, Pushed

MAX_TTR_S: Final = 60 * 86_400  # a job's record has no room for a longer one
# Steps over numbers that are somebody's ids: each is twice as far as the one before, the last one half a billion.
MOST_TRIES: Final = 20


def refusal_to_put(server: BeanstalkServer, topic: str) -> bytes:
    """Why no job can be put into the tube, b"" = one can."""
    return b"" if server.allows(topic) else NOT_FOUND


def job_to_put(topic: str, priority: int, delay_s: int, ttr_s: int, body: bytes) -> Job:
    """The job that a `put` describes, without a number."""
    return Job(
        topic=topic,
        id="",
        body=body,
        ttr_ms=max(1, min(ttr_s, MAX_TTR_S)) * 1000,
        delay_ms=min(delay_s, MAX_DELAY_S) * 1000,
        if_exists=IfExists.FAIL,
        priority=priority,
    )


def put(server: BeanstalkServer, jobs: Sequence[Job]) -> Answer:
    """Push jobs of one tube under new numbers. The answer holds a line for each."""
    numbers = server.numbers.take(len(jobs))
    if numbers is None:
        return _put_slowly(server, jobs)
    for job, number in zip(jobs, numbers, strict=True):
        job.id = str(number)
    return Pending(
        server.jobs.push_many(jobs),
        partial(_were_put, server, jobs),
        failed=lambda error: answer_to(error) * len(jobs),
    )


def _were_put(server: BeanstalkServer, jobs: Sequence[Job], pushed: list[Pushed]) -> Answer:
    if pushed.count(DONE) < len(jobs):
        return _put_behind(server, jobs, [each.code for each in pushed])
    return _inserted(server, jobs)


async def _put_slowly(server: BeanstalkServer, jobs: Sequence[Job]) -> bytes:
    """Put jobs whose numbers must be fetched first."""
    try:
        codes = await _push(server, jobs)
    except Exception as error:
        return answer_to(error) * len(jobs)
    return await _put_behind(server, jobs, codes)


async def _put_behind(server: BeanstalkServer, jobs: Sequence[Job], codes: list[int]) -> bytes:
    """Put those jobs again whose numbers are somebody's ids, such as those of orders.

    There may be many in a row: then the numbers go on behind them, for all jobs that follow.
    """
    for tries in range(MOST_TRIES):
        left = [at for at, code in enumerate(codes) if code == Code.JOB_EXISTS]
        if not left:
            break
        server.numbers.leave(int(jobs[left[-1]].id), BLOCK * (2**tries - 1))
        try:
            again = await _push(server, [jobs[at] for at in left])
        except Unavailable:  # the other jobs are there
            break
        for at, code in zip(left, again, strict=True):
            codes[at] = code
    return b"".join(
        [
            OUT_OF_MEMORY if code else _inserted(server, [job])
            for job, code in zip(jobs, codes, strict=True)
        ]
    )


async def _push(server: BeanstalkServer, jobs: Sequence[Job]) -> list[int]:
    for job in jobs:
        job.id = str(await server.numbers.next())
    return [pushed.code for pushed in await server.jobs.push_many(jobs)]


def _inserted(server: BeanstalkServer, jobs: Sequence[Job]) -> bytes:
    """Count the jobs that were put into a tube, and answer their client."""
    server.puts += len(jobs)
    server.tubes.count(jobs[0].topic).puts += len(jobs)
    return "".join([f"INSERTED {job.id}\r\n" for job in jobs]).encode()
