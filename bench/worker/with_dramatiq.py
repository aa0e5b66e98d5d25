"""dramatiq: threads, jobs in a list of Redis."""

import signal
from collections.abc import Iterable
from typing import Final

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from bench.worker.side import QUEUE, Work, play

PREFETCH: Final = 200
IDLE_MS: Final = 10


def enqueue(url: str, bodies: Iterable[str]) -> None:
    """One call a job; there is none for many."""
    handle = dramatiq.actor(
        _nothing, actor_name="handle", queue_name=QUEUE, broker=RedisBroker(url=url)
    )
    for body in bodies:
        handle.send(body)


def work(task: Work) -> None:
    """Tuned: takes 200 jobs ahead in place of 20, and looks every 10 ms when it is idle."""
    broker = RedisBroker(url=task.url)
    dramatiq.actor(task.handle, actor_name="handle", queue_name=QUEUE, broker=broker)
    options = {"worker_timeout": IDLE_MS} if task.tuned else {}
    worker = dramatiq.Worker(broker, worker_threads=task.concurrency, **options)
    if task.tuned:
        worker.queue_prefetch = PREFETCH
    # the threads work; this one waits, as in dramatiq's own program
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    worker.start()
    signal.sigwait({signal.SIGTERM})
    worker.stop()


def _nothing(_: str) -> None:
    """Only its name is needed."""


if __name__ == "__main__":
    play(work, enqueue=enqueue)
