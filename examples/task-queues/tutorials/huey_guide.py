"""Huey's guide: a task that adds, now and in 10 s; one that fails now and then; one that runs every three minutes.

delay-queue worker huey_guide:worker, and beside it: python huey_guide.py
"""

import random

from delayqueue import Worker

worker = Worker()


@worker.task("sum")
def add(a: int, b: int) -> int:
    return a + b


@worker.task("flaky", max_attempts=3, retry=["10s"])
def flaky() -> str:
    if random.randint(0, 1) == 0:
        raise RuntimeError("failing")
    return "OK"


@worker.task("three-minutes", every="3m")
def every_three_minutes() -> None:
    print("three minutes are over")


def main() -> None:
    for job_id in (add.push(1, 2, retain="5m"), add.push(3, 4, delay="10s", retain="5m")):
        job = worker.client.get(job_id, wait="15s")
        print(job and job.message)
    flaky.push()


if __name__ == "__main__":
    main()
