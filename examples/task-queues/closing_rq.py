"""rq worker --with-scheduler orders, and, once: rq cron closing_rq.py"""

from datetime import timedelta

from redis import Redis
from rq import Queue, Retry, cron
from rq.exceptions import NoSuchJobError
from rq.job import Job

redis = Redis()
orders = Queue("orders", connection=redis)


def close(order, reason):
    if not order.isdigit():
        raise LookupError(f"no order {order}")  # is tried again as others are
    return f"closed order {order}: {reason}"


def report():
    print("yesterday's orders")


cron.register(report, queue_name="orders", cron="30 9 * * 1-5")  # in the time zone of the machine


def place(order):
    orders.enqueue_in(
        timedelta(minutes=30),
        close,
        order,
        "not paid",
        job_id=f"close-{order}",
        retry=Retry(max=3, interval=[10, 60, 600]),
        result_ttl=86_400,
    )


def paid(order):
    Job.fetch(f"close-{order}", connection=redis).cancel()


def outcome(order):
    try:
        return Job.fetch(f"close-{order}", connection=redis).return_value()
    except NoSuchJobError:
        return None
