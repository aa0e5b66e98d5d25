import sentry_sdk

from delayqueue import Retry, Worker
from delayqueue.worker import Next, ReservedJob

sentry_sdk.init()  # the project is $SENTRY_DSN
worker = Worker()


@worker.middleware
async def to_sentry(job: ReservedJob, go_on: Next) -> None:
    with sentry_sdk.isolation_scope() as scope:  # its tags and breadcrumbs are those of this job
        scope.set_transaction_name(job.topic)
        scope.set_tag("topic", job.topic)
        scope.set_context("job", {"id": job.id, "attempt": job.attempt})
        try:
            await go_on(job)
        except Retry:
            raise  # "not yet" is no error
        except Exception as error:
            sentry_sdk.capture_exception(error)
            raise  # the worker has to know that the attempt failed


@worker.on("mail")
def send(address: str) -> None:
    sentry_sdk.set_tag("domain", address.partition("@")[2])
    if "@" not in address:
        raise ValueError("no address")
    if address.endswith("@slow.example"):
        raise Retry("1m", "the mail server is busy")
