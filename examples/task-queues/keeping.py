from celery import Celery

from delayqueue.contrib.celery import install

app = Celery("keeping", broker="redis://localhost")
relay = install(app)  # the server at $DELAYQUEUE_URL


@app.task
def close(order):
    print("closing order", order)


def place(order):
    close.apply_async((order,), countdown=1800, task_id=f"close-{order}")


def paid(order):
    app.control.revoke(f"close-{order}")
