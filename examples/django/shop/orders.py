from functools import partial

from django.db import transaction

from delayqueue import Client
from shop.models import Order

queue = Client()  # at $DELAYQUEUE_URL; it connects when it is used, and threads may share it


def place(item: str) -> Order:
    with transaction.atomic():
        order = Order.objects.create(item=item)
        body = {"order": order.pk}
        push = partial(queue.push, "order-close", body, id=f"close-{order.pk}", delay="30m")
        transaction.on_commit(push)
    return order
