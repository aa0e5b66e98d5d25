"""An app of Celery, and the worker that sends it what is due; test_celery.py runs both."""

import os
import signal
from pathlib import Path
from typing import Any

from celery import Celery

from delayqueue.contrib.celery import install
from delayqueue.worker import Next, ReservedJob

app = Celery("shop", broker=os.environ["BROKER"])
# restored once a second if it is not acknowledged; by default an hour, looked at every 100 s
app.conf.broker_transport_options = {
    "visibility_timeout": 1,
    "unacked_restore_interval": 1,
    "unacked_restore_throttle": 1,
}
relay = install(app, topic=os.environ["TOPIC"], beyond=os.environ["BEYOND"])


@app.task(name="close", bind=True)  # type: ignore[untyped-decorator]
def close(self: Any, again_s: int = 0) -> None:
    with Path("runs").open("a", encoding="ascii") as runs:
        runs.write(f"{self.request.id} {self.request.retries}\n")
    if again_s and not self.request.retries:
        raise self.retry(countdown=again_s)


@relay.middleware
async def die(job: ReservedJob, go_on: Next) -> None:
    await go_on(job)
    if "DIES" in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)
