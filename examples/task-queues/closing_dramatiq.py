"""dramatiq closing_dramatiq, and a cron job that sends report()"""

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

broker = RedisBroker(url="redis://localhost")
broker.add_middleware(Results(backend=RedisBackend(url="redis://localhost")))
dramatiq.set_broker(broker)
paid_orders = set()  # in your database


@dramatiq.actor(
    max_retries=3, min_backoff=10_000, throws=LookupError, store_results=True, result_ttl=86_400_000
)
def close(order, reason):
    if order in paid_orders:  # a message cannot be cancelled
        return None
    if not order.isdigit():
        raise LookupError(f"no order {order}")
    return f"closed order {order}: {reason}"


@dramatiq.actor
def report():
    print("yesterday's orders")


def place(order):
    return close.send_with_options(args=(order, "not paid"), delay=1_800_000)


def paid(order):
    paid_orders.add(order)


def outcome(message):  # what place() returned
    return message.get_result()
