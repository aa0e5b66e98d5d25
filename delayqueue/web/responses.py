"""What each endpoint gives: the `data` of its answer. Times are unix seconds, lengths of time seconds."""

from typing import NotRequired  # pydantic needs this one before Python 3.12

from typing_extensions import TypedDict


class ReservedJob(TypedDict):
    """A job that was handed out by /pop; `due` is when it was to be delivered."""

    topic: str
    id: str
    body: str
    attempt: int
    receipt: str
    due: float
    traceparent: NotRequired[str]  # where it was pushed with one


class TakenJob(TypedDict):
    """A job that /take handed out. It is gone from the queue, so there is nothing to finish."""

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
    """How a subscriber fared with a job: `succeeded` or `failed`. `due`: when it is called again, null = it is not."""

    subscriber: str
    status: str
    attempts: int
    started: float | None
    ended: float | None
    due: float | None
    message: str


class FullJob(TypedDict):
    """All that is known of a job; `delay` is its due time in whole unix seconds, as in the original.

    The last three are told where they are asked for: its own retry schedule, for how long it is kept after its end, and
    when nobody needs it any more; null = it has none.
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

    null = no limit; of `buried_retain` what the server's settings say. `declared`: in a config file.
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
    """A call of a subscriber that failed: when, with which job, the beginning of what was said."""

    at: float
    id: str
    message: str


class CallCounts(TypedDict):
    """The calls of a subscriber within 24 hours, seconds that one took on average, the last failures."""

    succeeded: int
    failed: int
    took: float | None
    failures: list[FailedCall]


class Trial(TypedDict):
    """What became of a call with a made-up job: the HTTP status, 0 where no answer came, and what was said."""

    succeeded: bool
    status: int
    took: float
    message: str


class SubscriberState(TypedDict):
    """Who is called with a topic's jobs. `handler`: its Python callable; `declared`: it stands in a config file.

    `paused`: since when, in unix seconds, null = it is called.
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
    calls: NotRequired[CallCounts]  # where they were asked for


class ScheduleState(TypedDict):
    """A schedule and its next occurrence. Either `cron` is "" or `every` null; `declared`: in a config file."""

    name: str
    topic: str
    cron: str
    every: float | None
    tz: str
    body: str
    ttr: int
    catch_up: str
    next: float | None
    declared: bool


class Occurrence(TypedDict):
    """A time of a schedule, also as it is written in the schedule's zone."""

    at: float
    local: str


class Next(TypedDict):
    """When a schedule occurs next; null = never again."""

    next: float | None


class NewId(TypedDict):
    """The id that the server made."""

    id: str


class PushResult(TypedDict):
    """What became of one job of an array."""

    id: object
    code: int
    message: str


class Result(TypedDict):
    """What became of one of many ids."""

    id: str
    code: int


class Due(TypedDict):
    """When the job is due again; null where it is buried or has expired."""

    due: float | None


class Deadline(TypedDict):
    """When the reservation ends."""

    deadline: float | None


class Count(TypedDict):
    """How many jobs it concerned."""

    count: int


class Kicked(Count):
    """How many jobs are ready now; with `ids` what became of each."""

    results: NotRequired[list[Result]]


class MovedJob(Result):
    """What became of one of many ids, and when it is due; null where it was not moved."""

    due: float | None


class Rescheduled(Count):
    """How many jobs have the new due time; with `ids` what became of each."""

    results: NotRequired[list[MovedJob]]


class Page(TypedDict):
    """Some of the jobs; `cursor` asks for the next ones, "" = that was all."""

    jobs: list[FullJob]
    cursor: str


class Forecast(TypedDict):
    """How many jobs fall due in each step from `start` on."""

    start: float
    step: float
    counts: list[int]


class DeadLetterGroup(TypedDict):
    """Dead letters of one reason: how many, since when, how many of which topics, and some of their ids.

    `reason`: the line of the message that says what went wrong, with # for ids and long numbers.
    """

    reason: str
    count: int
    first: float
    last: float
    topics: dict[str, int]
    ids: list[str]


class Buried(TypedDict):
    """Groups of a page of dead letters, the largest first. `cursor`: of the next page, "" = there is none."""

    groups: list[DeadLetterGroup]
    cursor: str


class ServerState(TypedDict):
    """A server process: jobs since its start, lateness of the last minute in seconds."""

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
    """A topic that somebody should look at, and why: `buried`, `late`, `paused`."""

    topic: TopicState
    why: list[str]


class Stats(TypedDict):
    """All in short."""

    topics: int
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


class Access(TypedDict):
    """What a token is good for."""

    roles: list[str]
    topics: list[str]


class Readiness(TypedDict):
    """The buckets, counted from 1, whose store does not answer while that of others does.

    `durable`: false where a failover could lose an acknowledged job, and `durability` asks that it does not.
    """

    away: list[int]
    durable: NotRequired[bool]
