"""RQ: jobs in a list of Redis. Only its enqueueing is measured: each of its workers runs one job at a time."""

from collections.abc import Iterable

from redis import Redis
from rq import Queue

from bench.worker.side import QUEUE, Work, play


def enqueue(url: str, bodies: Iterable[str]) -> None:
    """One call a job."""
    with Redis.from_url(url) as redis:
        queue = Queue(QUEUE, connection=redis)
        for body in bodies:
            queue.enqueue("handle", body)


def work(_: Work) -> None:
    """Nobody asks for it."""
    raise NotImplementedError


if __name__ == "__main__":
    play(work, enqueue=enqueue)
