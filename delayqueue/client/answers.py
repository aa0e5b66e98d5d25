"""What the server answers, under the names that Python programs know."""

from delayqueue.answers.jobs import FailedAttempt as Attempt
from delayqueue.answers.jobs import Findings, FoundJob, JobCall, Page, ReservedJob, TakenJob
from delayqueue.answers.jobs import FullJob as JobDetails
from delayqueue.answers.jobs import PushResult as Outcome
from delayqueue.answers.jobs import SubscriberResult as Result
from delayqueue.answers.schedules import Occurrence, SchedulePage
from delayqueue.answers.schedules import ScheduleState as Schedule
from delayqueue.answers.servers import (
    Access,
    Attention,
    History,
    HistoryMark,
    HostCalls,
    Stats,
    WorkerJob,
)
from delayqueue.answers.servers import OutboxState as OutboxStats
from delayqueue.answers.servers import ServerState as ServerStats
from delayqueue.answers.servers import StoreState as StoreStats
from delayqueue.answers.servers import TroubleState as Trouble
from delayqueue.answers.servers import WorkerState as WorkerStats
from delayqueue.answers.subscribers import CallCounts as Calls
from delayqueue.answers.subscribers import FailedCall, SubscriberPage, Trial
from delayqueue.answers.subscribers import SubscriberState as Subscriber
from delayqueue.answers.topics import Buried as DeadLetters
from delayqueue.answers.topics import DeadLetterGroup, Forecast, Note, TopicRates
from delayqueue.answers.topics import LimitState as Limits
from delayqueue.answers.topics import TopicState as TopicCounts

__all__ = [
    "Access",
    "Attempt",
    "Attention",
    "Calls",
    "DeadLetterGroup",
    "DeadLetters",
    "FailedCall",
    "Findings",
    "Forecast",
    "FoundJob",
    "History",
    "HistoryMark",
    "HostCalls",
    "JobCall",
    "JobDetails",
    "Limits",
    "Note",
    "Occurrence",
    "OutboxStats",
    "Outcome",
    "Page",
    "ReservedJob",
    "Result",
    "Schedule",
    "SchedulePage",
    "ServerStats",
    "Stats",
    "StoreStats",
    "Subscriber",
    "SubscriberPage",
    "TakenJob",
    "TopicCounts",
    "TopicRates",
    "Trial",
    "Trouble",
    "WorkerJob",
    "WorkerStats",
]
