"""What a Python program works on jobs with: Worker, and the orders that its handlers may give."""

from delayqueue.client.jobs import ReservedJob
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
