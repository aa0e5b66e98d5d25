"""Closes orders that are not paid within half an hour, and reports in the morning of each working day.

delay-queue worker closing:worker
"""

from delayqueue import Worker

worker = Worker()  # at $DELAYQUEUE_URL


@worker.task("order-close", retry=["10s", "1m", "10m"], bury_on=LookupError)
def close(order: str, reason: str) -> str:
    if not order.isdigit():
        raise LookupError(f"no order {order}")
    return f"closed order {order}: {reason}"


@worker.task("report", cron="30 9 * * MON-FRI", tz="Asia/Shanghai")
def report() -> None:
    print("yesterday's orders")


def place(order: str) -> None:
    close.push(order, "not paid", delay="30m", id=f"close-{order}", retain="1d")


def paid(order: str) -> None:
    worker.client.delete(f"close-{order}")


def outcome(order: str) -> str | None:
    job = worker.client.get(f"close-{order}")
    return job.message if job else None
