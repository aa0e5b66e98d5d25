"""The Python worker: Worker, and the exceptions with which its handlers give orders."""

from delayqueue.client.answers import ReservedJob
from delayqueue.worker.handlers import Next
from delayqueue.worker.verdict import Buried, Bury, Finished, Released, Retry, Verdict
from delayqueue.worker.worker import Worker

__all__ = [
    "Buried",
    "Bury",
    "Finished",
    "Next",
    "Released",
    "ReservedJob",
    "Retry",
    "Verdict",
    "Worker",
]
