"""celery -A closing_celery worker, and, once: celery -A closing_celery beat"""

from celery import Celery
from celery.result import AsyncResult
from celery.schedules import crontab

app = Celery("closing", broker="redis://localhost", backend="redis://localhost")
app.conf.timezone = "Asia/Shanghai"
app.conf.result_expires = 86_400
app.conf.broker_transport_options = {"visibility_timeout": 7200}  # more than any delay
app.conf.beat_schedule = {
    "report": {
        "task": "closing_celery.report",
        "schedule": crontab(hour=9, minute=30, day_of_week="mon-fri"),
    }
}


@app.task(
    acks_late=True,
    autoretry_for=(Exception,),
    dont_autoretry_for=(LookupError,),
    retry_backoff=10,
    max_retries=3,
)
def close(order, reason):
    if not order.isdigit():
        raise LookupError(f"no order {order}")
    return f"closed order {order}: {reason}"


@app.task
def report():
    print("yesterday's orders")


def place(order):
    close.apply_async((order, "not paid"), countdown=1800, task_id=f"close-{order}")


def paid(order):
    app.control.revoke(f"close-{order}")  # the workers that run now remember it


def outcome(order):
    result = AsyncResult(f"close-{order}", app=app)
    return result.result if result.ready() else None
