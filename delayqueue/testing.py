"""For the tests of your handlers: run them without a server.

verdict = run(worker, "mail", "Hello")
assert verdict == Finished()
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from delayqueue.client.jobs import ReservedJob, new_id
from delayqueue.tasks import is_told_to_end
from delayqueue.threads import Threads
from delayqueue.worker.verdict import Buried, Finished, Released, verdict_of

if TYPE_CHECKING:
    from delayqueue.worker import Verdict, Worker

__all__ = ["Buried", "Finished", "Released", "arun", "job", "run"]


def job(topic: str, body: str = "", *, id: str | None = None, attempt: int = 1) -> ReservedJob:  # noqa: A002  # its name in the API
    """A job as a handler gets it."""
    return ReservedJob(
        topic, new_id() if id is None else id, body, attempt, "a-receipt", time.time()
    )


def run(worker: Worker, topic: str, body: str = "", *, attempt: int = 1) -> Verdict:
    """Run a job through the handlers and middlewares of `topic`; what the worker would report to the server.

    An error of a handler is part of the verdict, its message tells. Raises KeyError if the topic has no handlers.
    """
    return asyncio.run(arun(worker, topic, body, attempt=attempt))


async def arun(worker: Worker, topic: str, body: str = "", *, attempt: int = 1) -> Verdict:
    """As run(), for tests that are asynchronous themselves."""
    if topic not in worker.handlers.topics:
        raise KeyError(topic)
    try:
        await worker.handlers.run(job(topic, body, attempt=attempt), Threads("handlers"))
    except BaseException as error:
        if is_told_to_end(error):
            raise
        return verdict_of(error)
    return Finished()
