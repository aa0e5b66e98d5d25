"""Celery: processes or threads, jobs in a list of Redis."""

import os
import threading
from collections.abc import Callable, Iterable
from typing import Any, Final

import celery

from bench.worker.side import QUEUE, Work, play

NAME: Final = "handle"
PREFETCH: Final = 20  # per thread, like dramatiq tuned


def enqueue(url: str, bodies: Iterable[str]) -> None:
    """One call a job; there is none for many."""
    app = _app(url)
    with app.producer_or_acquire() as producer:
        for body in bodies:
            app.send_task(NAME, (body,), producer=producer)


def work(task: Work) -> None:
    """As installed: processes. Tuned: threads, which take 20 jobs each ahead in place of 4; no talk with other workers.

    A job is acknowledged once it is done, as with the others: by default Celery forgets those that a dead worker had.
    """
    app = _app(task.url)
    app.conf.task_acks_late = True
    app.conf.worker_hijack_root_logger = app.conf.worker_redirect_stdouts = False
    app.task(name=NAME)(task.handle if task.tuned else _told_to_parent(task.handle))
    options: dict[str, Any] = {"pool": "prefork"}
    if task.tuned:
        options = {"pool": "threads", "prefetch_multiplier": PREFETCH}
        options |= dict.fromkeys(("without_gossip", "without_mingle", "without_heartbeat"), True)
    app.Worker(concurrency=task.concurrency, **options).start()


def _app(url: str) -> celery.Celery:
    app = celery.Celery(broker=url)
    app.conf.task_default_queue = QUEUE
    return app


def _told_to_parent(handle: Callable[[str], None]) -> Callable[[str], None]:
    """What a worker's processes do, so that the one that counts hears of it."""
    reading, writing = os.pipe()

    def listen() -> None:
        with os.fdopen(reading) as told:
            for line in told:
                handle(line.rstrip("\n"))

    threading.Thread(target=listen, daemon=True).start()

    def tell(body: str) -> None:
        os.write(writing, f"{body}\n".encode())

    return tell


if __name__ == "__main__":
    play(work, enqueue=enqueue)
