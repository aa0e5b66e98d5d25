"""The servers, their store and their past, and what a token allows."""

from dataclasses import KW_ONLY, field

from delayqueue.answers.answer import LEFT_OUT, answer, omittable
from delayqueue.answers.topics import TopicCounts


@answer
class ServerStats:
    """A server process: jobs since its start, lateness in the last minute in seconds.

    `call_limit`: how many calls of jobs it makes at once to one host, 0 = none.
    """

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
    call_limit: int = 0


@answer
class HostCalls:
    """The calls of jobs to a host and port, by all servers: those under way and of the last minute, the last failure.

    `limit`: the most at once; `waiting`: jobs that are due and have no place, the first since `waiting_since`, and one
    is tried again at `next_try`; `put_off`: how often a job found none; `took`: seconds that a call took on average.
    """

    host: str
    calling: int
    limit: int
    waiting: int
    waiting_since: float | None
    next_try: float | None
    succeeded: int
    failed: int
    put_off: int
    took: float | None
    failed_at: float | None
    error: str


@answer
class OutboxStats:
    """An outbox, as one of its relays told it at `seen`: rows that have `failed`, and why the newest of them has.

    `oldest_age`: of the oldest row that waits, in seconds; 0 = none waits.
    """

    name: str
    failed: int
    reason: str
    oldest_age: float
    seen: float


@answer
class WorkerJob:
    """A job that a worker has in hand, since when, and until when it is its own."""

    id: str
    topic: str
    since: float
    until: float


@answer
class WorkerStats:
    """A worker that told its name with a poll, seen by any server; `since` the first time, `seen` the last time.

    `address` is that of its connection. It has `in_hand` jobs, which are its own until `until` at the latest; `jobs`
    are those that it has had for longest. `finished` and `failed` count the last minute. `gone`: its connection broke,
    and nothing was heard of it since.
    """

    name: str
    version: str
    host: str
    pid: int
    concurrency: int
    address: str
    topics: list[str]
    since: float
    seen: float
    gone: bool
    in_hand: int
    until: float | None
    jobs: list[WorkerJob]
    finished: int
    failed: int


@answer
class StoreStats:
    """The store; memory in bytes, `memory_limit` 0 = none.

    `alarms`: why it takes no jobs, or loses some; `warnings`: why it could soon.
    """

    version: str
    memory: int
    memory_limit: int
    durable: bool
    warnings: list[str]
    alarms: list[str] = field(default_factory=list)


@answer
class Attention:
    """A topic that needs attention, and why: `buried`, `late`, `paused`, `full`."""

    topic: TopicCounts
    why: list[str]


@answer
class Trouble:
    """What goes wrong again and again, `count` times within the last hour or longer, `at` the last time.

    `kind`: a `job` whose TTR expires (`count` is its attempt, `message` the worker), a `worker` that let the TTR of
    jobs expire (`message` is the last job), a `subscriber` or `host` all of whose calls fail, `pushes` that are
    refused (`name` is the code), `connections` that are refused, or jobs of a topic that the store has `lost`.
    """

    kind: str
    name: str
    topic: str
    count: int
    at: float
    message: str


@answer
class Stats:
    """An overview. `called`: ready jobs with a call; `calls`: the hosts to which calls go, those in trouble first.

    `outboxes`: those whose relays were heard within the last hour, first those with failed rows. Asked with `counts`
    false, it has no member that takes a count of all topics.
    """

    _: KW_ONLY
    topics: int = omittable(default=0)
    paused: int = omittable(default=0)
    delayed: int = omittable(default=0)
    ready: int = omittable(default=0)
    reserved: int = omittable(default=0)
    buried: int = omittable(default=0)
    oldest_ready_age: float | None = omittable(default=None, nullable=True)
    busiest: list[TopicCounts] = omittable(default_factory=list)
    attention: list[Attention] = omittable(default_factory=list)
    servers: list[ServerStats]
    called: int = omittable(default=0)
    calls: list[HostCalls] = field(default_factory=list)
    outboxes: list[OutboxStats] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    store: StoreStats
    settings: dict[str, str]
    set_in: dict[str, str] = field(default_factory=dict)


@answer
class Access:
    """What a client may do: its roles, the topics that it may reach, and the paths that its roles may call.

    `user`: the name of one whom a proxy has logged in.
    """

    roles: list[str]
    topics: list[str]
    endpoints: list[str] = field(default_factory=list)  # earlier versions do not tell them
    user: str = omittable(default="")


@answer
class Readiness:
    """The buckets, counted from 1, whose store does not answer while that of others does.

    `durable`: false if a failover could lose an acknowledged job although `durability` should prevent that. `alarms`:
    what else is wrong with the store, in words. `emptied`: true if the last of them is that it was emptied or replaced,
    until somebody says with /accept-store that it is new.
    """

    away: list[int]
    durable: bool = omittable(default=LEFT_OUT)
    alarms: list[str] = omittable(default=LEFT_OUT)
    emptied: bool = omittable(default=LEFT_OUT)


@answer
class HistoryMark:
    """A server was `started`, an `outage` of the store lasted that many seconds, or a `failover` happened.

    Or the `clock` of the store has jumped; or somebody, `by`, `did` something with the page: `what` is the call, what
    it was for, and how many jobs it changed. `server`: the one that was started; "" = it concerns all.
    """

    at: float
    kind: str
    lasted: float
    server: str
    by: str = ""
    what: str = ""


@answer
class History:
    """Figures per step of time, the first step at `start`; null = nothing is known.

    Jobs that were pushed, delivered and finished, and failed attempts; lateness of first deliveries; the most jobs seen
    in a state.
    """

    start: float
    step: float
    pushed: list[int | None]
    delivered: list[int | None]
    finished: list[int | None]
    failed: list[int | None]
    lateness_mean: list[float | None]
    lateness_worst: list[float | None]
    delayed: list[int | None]
    ready: list[int | None]
    reserved: list[int | None]
    buried: list[int | None]
    marks: list[HistoryMark]
