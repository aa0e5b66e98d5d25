"""The Python worker: Worker, and the exceptions with which its handlers give orders."""

from delayqueue.answers.jobs import ReservedJob
from delayqueue.worker.current import current_context, current_job
from delayqueue.worker.handled_job import HandledJob, HandlerResult
from delayqueue.worker.handlers import Next
from delayqueue.worker.task import Task
from delayqueue.worker.verdict import Buried, Bury, Finished, Released, Retry, Verdict
from delayqueue.worker.worker import Worker

__all__ = [
    "Buried",
    "Bury",
    "Finished",
    "HandledJob",
    "HandlerResult",
    "Next",
    "Released",
    "ReservedJob",
    "Retry",
    "Task",
    "Verdict",
    "Worker",
    "current_context",
    "current_job",
]
