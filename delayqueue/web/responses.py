"""The `data` of each endpoint's answer. Times are unix seconds, durations seconds."""

from typing import NotRequired  # pydantic needs this one before Python 3.12

from typing_extensions import TypedDict


class ReservedJob(TypedDict):
    """A job that /pop handed out; `due` is when it was to be delivered."""

    topic: str
    id: str
    body: str
    attempt: int
    receipt: str
    due: float
    traceparent: NotRequired[str]  # if it was pushed with one


class TakenJob(TypedDict):
    """A job that /take handed out. It has left the queue, so there is nothing to finish."""

    topic: str
    id: str
    body: str
    due: float


class FailedAttempt(TypedDict):
    """One delivery that was released, buried or not finished in time."""

    attempt: int
    started: float | None
    ended: float | None
    message: str


class SubscriberResult(TypedDict):
    """A subscriber's result for a job: `succeeded` or `failed`. `due`: when it is called again, null = it is not."""

    subscriber: str
    status: str
    attempts: int
    started: float | None
    ended: float | None
    due: float | None
    message: str


class FullJob(TypedDict):
    """All about a job; `delay` is its due time in whole unix seconds, as in the original.

    `retry`, `retain` and `expires` are there only if asked for: its own retry schedule, how long it is kept after its
    end, and when it expires; null = it has none.
    """

    topic: str
    id: str
    delay: int
    ttr: int
    body: str
    state: str
    attempt: int
    tags: tuple[str, ...]
    priority: int
    message: str
    created: float | None
    due: float | None
    started: float | None
    ended: float | None
    attempts: list[FailedAttempt]
    results: list[SubscriberResult]
    retry: NotRequired[list[float] | None]
    retain: NotRequired[float | None]
    expires: NotRequired[float | None]


class LimitState(TypedDict):
    """How fast and how many at once a topic's jobs are handed out, and for how many seconds its buried ones are kept.

    null = no limit; for `buried_retain`, the server's setting. `declared`: from a config file.
    """

    rate: float | None
    burst: int | None
    concurrency: int | None
    buried_retain: float | None
    declared: bool


class TopicState(TypedDict):
    """A topic and its exact counts. `paused`: false, true = until resumed, or the unix time at which it ends."""

    topic: str
    delayed: int
    ready: int
    reserved: int
    buried: int
    oldest_ready_age: float | None
    paused: bool | float
    limit: LimitState | None


class FailedCall(TypedDict):
    """A failed call of a subscriber: when, with which job, and the start of the error message."""

    at: float
    id: str
    message: str


class CallCounts(TypedDict):
    """The calls of a subscriber within 24 hours, their average length in seconds, the last failures."""

    succeeded: int
    failed: int
    took: float | None
    failures: list[FailedCall]


class Trial(TypedDict):
    """The outcome of a call with a made-up job: the HTTP status (0 = no answer), and the answer."""

    succeeded: bool
    status: int
    took: float
    message: str


class SubscriberState(TypedDict):
    """A webhook or Python handler for a topic's jobs. `handler`: the Python callable; `declared`: from a config file.

    `paused`: since when, in unix seconds, null = not paused.
    """

    name: str
    topic: str
    order: int
    url: str
    handler: str
    timeout: float
    retry: list[float]
    concurrency: int
    signed: bool
    declared: bool
    expect: str
    on_failure: str
    payload: str
    paused: float | None
    calls: NotRequired[CallCounts]  # only if asked for


class ScheduleState(TypedDict):
    """A schedule and its next occurrence. Either `cron` is "" or `every` null; `declared`: from a config file."""

    name: str
    topic: str
    cron: str
    every: float | None
    tz: str
    body: str
    ttr: int
    catch_up: str
    paused: bool
    next: float | None
    declared: bool


class Occurrence(TypedDict):
    """One time of a schedule, also written in the schedule's time zone."""

    at: float
    local: str


class Next(TypedDict):
    """The next occurrence of a schedule; null = never again."""

    next: float | None


class NewId(TypedDict):
    """The id that the server generated."""

    id: str


class PushResult(TypedDict):
    """What happened to one job of an array."""

    id: object
    code: int
    message: str


class Result(TypedDict):
    """What happened to one of many ids."""

    id: str
    code: int


class Due(TypedDict):
    """When the job is due again; null if it was buried or has expired."""

    due: float | None


class Deadline(TypedDict):
    """When the reservation ends."""

    deadline: float | None


class Count(TypedDict):
    """How many jobs were affected."""

    count: int


class Kicked(Count):
    """How many jobs are ready now; with `ids`, what happened to each."""

    results: NotRequired[list[Result]]


class MovedJob(Result):
    """What happened to one of many ids, and when it is due; null if it was not moved."""

    due: float | None


class Rescheduled(Count):
    """How many jobs have the new due time or priority; with `ids`, what happened to each."""

    results: NotRequired[list[MovedJob]]


class Page(TypedDict):
    """Some of the jobs; `cursor` leads to the next page, "" on the last one."""

    jobs: list[FullJob]
    cursor: str


class Forecast(TypedDict):
    """How many jobs fall due in each step, the first at `start`."""

    start: float
    step: float
    counts: list[int]


class DeadLetterGroup(TypedDict):
    """Dead letters with one reason: how many, since when, how many of which topics, and some of their ids.

    `reason`: the line of the message that says what went wrong, with # instead of ids and long numbers.
    """

    reason: str
    count: int
    first: float
    last: float
    topics: dict[str, int]
    ids: list[str]


class Buried(TypedDict):
    """A page of groups of dead letters, the largest first. `cursor` leads to the next page, "" on the last one."""

    groups: list[DeadLetterGroup]
    cursor: str


class ServerState(TypedDict):
    """A server process: jobs since its start, lateness in the last minute in seconds."""

    name: str
    version: str
    started: float
    seen: float
    pushed: int
    delivered: int
    finished: int
    waiting: int
    lateness_p50: float | None
    lateness_p99: float | None


class StoreState(TypedDict):
    """The store; memory in bytes, `memory_limit` 0 = none."""

    version: str
    memory: int
    memory_limit: int
    durable: bool
    warnings: list[str]


class Attention(TypedDict):
    """A topic that needs attention, and why: `buried`, `late`, `paused`."""

    topic: TopicState
    why: list[str]


class Stats(TypedDict):
    """An overview."""

    topics: int
    paused: int
    delayed: int
    ready: int
    reserved: int
    buried: int
    oldest_ready_age: float | None
    busiest: list[TopicState]
    attention: list[Attention]
    servers: list[ServerState]
    store: StoreState
    settings: dict[str, str]
    set_in: dict[str, str]


class Access(TypedDict):
    """What a token allows."""

    roles: list[str]
    topics: list[str]


class Readiness(TypedDict):
    """The buckets, counted from 1, whose store does not answer while that of others does.

    `durable`: false if a failover could lose an acknowledged job although `durability` should prevent that.
    """

    away: list[int]
    durable: NotRequired[bool]
