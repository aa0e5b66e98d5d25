from functools import wraps

import django
from django.db import close_old_connections
from pydantic import BaseModel

from delayqueue import Worker

django.setup()

from shop.models import Order  # noqa: E402  # models need the setup

worker = Worker()


class OrderClose(BaseModel):
    order: int


def with_database(handler):
    """As a request does: drop connections that are broken or too old, in the thread that uses them."""

    @wraps(handler)
    def run(*arguments):
        close_old_connections()
        try:
            return handler(*arguments)
        finally:
            close_old_connections()

    return run


@worker.on("order-close")
@with_database
def close(job: OrderClose) -> str:
    closed = Order.objects.filter(pk=job.order, state="unpaid").update(state="closed")
    return "closed" if closed else "nothing to close"
