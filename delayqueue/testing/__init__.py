"""For the tests of your handlers: run them without a server.

verdict = run(worker, "mail", "Hello")
assert verdict == Finished()

Queue stands in for a Client, with a clock that can be turned; plugin.py has both as fixtures of pytest.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from delayqueue.client.jobs import new_id
from delayqueue.client.payload import body_of
from delayqueue.testing.handling import verdict_on
from delayqueue.testing.queue import Queue, Ran
from delayqueue.worker.executor import Executor
from delayqueue.worker.handled_job import HandledJob
from delayqueue.worker.verdict import Buried, Finished, Released

if TYPE_CHECKING:
    from delayqueue.client.payload import Payload
    from delayqueue.worker import Verdict, Worker

__all__ = ["Buried", "Finished", "Queue", "Ran", "Released", "arun", "job", "run"]


def job(topic: str, body: Payload = "", *, id: str | None = None, attempt: int = 1) -> HandledJob:  # noqa: A002  # its name in the API
    """A job as a handler gets it."""
    return HandledJob(
        topic, new_id() if id is None else id, body_of(body), attempt, "a-receipt", time.time()
    )


def run(
    worker: Worker, topic: str, body: Payload = "", *, attempt: int = 1, context: Any = ...
) -> Verdict:
    """Run a job through the handlers and middlewares of `topic`; returns what the worker would report to the server.

    `context` replaces what the worker's lifespan yields; without it the lifespan runs. An error of a handler becomes
    part of the verdict, as its message. Raises KeyError if the topic has no handlers.
    """
    return asyncio.run(arun(worker, topic, body, attempt=attempt, context=context))


async def arun(
    worker: Worker, topic: str, body: Payload = "", *, attempt: int = 1, context: Any = ...
) -> Verdict:
    """What the worker would report about an attempt, for asynchronous tests.

    `context` replaces what the worker's lifespan yields. Raises KeyError if the topic has no handlers.
    """
    worker.load()
    if topic not in worker.handlers.topics:
        raise KeyError(topic)
    verdict = await verdict_on(worker, job(topic, body, attempt=attempt), context, Executor())
    last = worker.handlers.policy_of(topic).last_attempt
    if isinstance(verdict, Released) and last is not None and attempt >= last:
        return Buried(verdict.message, verdict.traceback)
    return verdict
