from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from delayqueue import Client
from delayqueue.client import Job
from shop.models import Order, Outbox

queue = Client()


def place(item: str) -> Order:
    with transaction.atomic():
        order = Order.objects.create(item=item)
        Outbox.objects.create(
            job_id=f"close-{order.pk}",
            topic="order-close",
            body={"order": order.pk},
            due=timezone.now() + timedelta(minutes=30),
        )
        transaction.on_commit(relay, robust=True)  # at once; if that fails, it is logged
    return order


def relay() -> int:
    """Push what is in the outbox. Returns how many jobs the queue has taken."""
    with transaction.atomic():
        rows = list(Outbox.objects.select_for_update(skip_locked=True).order_by("pk")[:1000])
        if not rows:
            return 0
        jobs = [Job(id=row.job_id, topic=row.topic, body=row.body, due=row.due) for row in rows]
        outcomes = queue.push_many(jobs)
        taken = [row.pk for row, outcome in zip(rows, outcomes, strict=True) if outcome.code == 0]
        Outbox.objects.filter(pk__in=taken).delete()
    return len(taken)
