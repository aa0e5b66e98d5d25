"""Celery's "First steps": a task that adds, and its result.

delay-queue worker celery_first_steps:worker, and beside it: python celery_first_steps.py
"""

from delayqueue import Worker

worker = Worker()


@worker.task("add")
def add(x: int, y: int) -> int:
    return x + y


def main() -> None:
    job = worker.client.get(add.push(4, 4, retain="5m"), wait="10s")
    print(job and job.message)


if __name__ == "__main__":
    main()
