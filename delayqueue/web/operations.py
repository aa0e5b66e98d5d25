"""What each endpoint takes, gives and refuses, with an example: what /openapi.json is made of."""

from typing import Any, Final, NamedTuple

from delayqueue.errors import (
    BadJson,
    Invalid,
    JobExists,
    NoSuchJob,
    QueueError,
    StaleReceipt,
    TooLarge,
    Unavailable,
    WrongState,
)
from delayqueue.web import (
    requests,
    reservation_requests,
    schedule_requests,
    subscriber_requests,
    topic_requests,
)
from delayqueue.web.answers import (
    Access,
    Count,
    Deadline,
    Due,
    Forecast,
    FullJob,
    Kicked,
    LimitState,
    NewId,
    Next,
    Outcome,
    Page,
    Readiness,
    Rescheduled,
    ReservedJob,
    Result,
    ScheduleState,
    ServerState,
    Stats,
    StoreState,
    SubscriberState,
    TakenJob,
    TopicState,
)
from delayqueue.web.requests import Request

Errors = tuple[type[QueueError], ...]


class Operation(NamedTuple):
    """One endpoint. `takes` None = no body; `gives` is the type of `data`; `needs` are the fields that must be there.

    `errors` are its own, besides those that any request can meet. `asks` and `answers` are an example.
    """

    takes: type[Request] | None
    needs: tuple[str, ...]
    gives: Any
    errors: Errors
    asks: dict[str, Any] | None
    answers: Any


BAD: Final[Errors] = (Invalid, BadJson, Unavailable)
BY_RECEIPT: Final[Errors] = (*BAD, NoSuchJob, StaleReceipt)
OF_RESERVED: Final[Errors] = (*BAD, NoSuchJob, WrongState, StaleReceipt)
RECEIPT: Final = "3f9c1e7a2b60-1f-7d31c6aa"
RESERVED: Final = ReservedJob(
    topic="order", id="1001", body="unpaid?", attempt=1, receipt=RECEIPT, due=1795217037.354
)
FULL: Final = FullJob(
    topic="order",
    id="1001",
    delay=1795217037,
    ttr=60,
    body="unpaid?",
    state="delayed",
    attempt=1,
    tags=("user:7",),
    message="no answer",
    created=1795215237.354,
    due=1795217037.354,
    started=1795216000.0,
    ended=None,
    attempts=[
        {"attempt": 1, "started": 1795216000.0, "ended": 1795216012.5, "message": "no answer"}
    ],
    results=[],
)
SUBSCRIBER: Final = SubscriberState(
    name="send-invoice",
    topic="paid",
    order=10,
    url="https://example.com/invoice",
    handler="",
    timeout=30.0,
    retry=[5.0, 300.0, 1800.0],
    concurrency=10,
    signed=True,
    declared=False,
    expect="",
    on_failure="bury",
    payload="body",
)
TOPIC: Final = TopicState(
    topic="order",
    delayed=3,
    ready=1,
    reserved=0,
    buried=0,
    oldest_ready_age=0.25,
    paused=False,
    limit=None,
)
LIMIT: Final = LimitState(rate=50, burst=5, concurrency=10, buried_retain=None, declared=False)
OF_TOPICS: Final = Operation(
    topic_requests.TopicsRequest, (), list[TopicState], BAD, {"match": "order"}, [TOPIC]
)
STATS: Final = Stats(
    topics=1,
    delayed=3,
    ready=1,
    reserved=0,
    buried=0,
    oldest_ready_age=0.25,
    busiest=[TOPIC],
    servers=[
        ServerState(
            name="web1:9277 #1",
            version="1.0.0",
            started=1795215237.0,
            seen=1795217037.354,
            pushed=4,
            delivered=0,
            finished=0,
            waiting=2,
            lateness_p50=None,
            lateness_p99=None,
        )
    ],
    store=StoreState(
        version="Redis 7.0.15", memory=1048576, memory_limit=0, durable=True, warnings=[]
    ),
    settings={"bind_address": "0.0.0.0:9277"},
)

SCHEDULE: Final = ScheduleState(
    name="report",
    topic="report",
    cron="30 9 * * MON-FRI",
    every=None,
    tz="Asia/Shanghai",
    body="",
    ttr=60,
    catch_up="once",
    next=1795224600.0,
    declared=False,
)

OPERATIONS: Final[dict[str, Operation]] = {
    "/push": Operation(
        requests.PushRequest,
        ("topic", "id", "ttr"),
        NewId | list[Outcome] | None,
        (*BAD, JobExists),
        {
            "topic": "order",
            "id": "1001",
            "delay": 1800,
            "ttr": 60,
            "body": "unpaid?",
            "tags": ["user:7"],
        },
        None,
    ),
    "/pop": Operation(
        requests.PopRequest,
        ("topic",),
        ReservedJob | list[ReservedJob] | None,
        BAD,
        {"topic": "urgent,order", "timeout": 10},
        RESERVED,
    ),
    "/finish": Operation(
        reservation_requests.EndRequest,
        (),
        list[Result] | None,
        BY_RECEIPT,
        {"id": "1001", "receipt": RECEIPT},
        None,
    ),
    "/delete": Operation(
        reservation_requests.EndRequest,
        (),
        list[Result] | None,
        BY_RECEIPT,
        {"ids": ["1001", "1002"]},
        [{"id": "1001", "code": 0}, {"id": "1002", "code": 0}],
    ),
    "/get": Operation(
        requests.GetRequest,
        (),
        FullJob | list[FullJob | Result | None] | None,
        BAD,
        {"id": "1001"},
        FULL,
    ),
    "/touch": Operation(
        reservation_requests.TouchRequest,
        ("id",),
        Deadline,
        OF_RESERVED,
        {"id": "1001", "receipt": RECEIPT, "ttr": 300},
        {"deadline": 1795217337.354},
    ),
    "/release": Operation(
        reservation_requests.ReleaseRequest,
        ("id",),
        Due,
        OF_RESERVED,
        {"id": "1001", "receipt": RECEIPT, "delay": 60, "message": "no answer"},
        {"due": 1795217097.354},
    ),
    "/kick": Operation(
        requests.KickRequest,
        (),
        Kicked,
        (*BAD, NoSuchJob, WrongState),
        {"topic": "order", "count": 100},
        {"count": 2},
    ),
    "/bury": Operation(
        reservation_requests.BuryRequest,
        ("id",),
        None,
        OF_RESERVED,
        {"id": "1001", "receipt": RECEIPT, "message": "no such account"},
        None,
    ),
    "/reschedule": Operation(
        requests.RescheduleRequest,
        (),
        Due | Rescheduled,
        (*BAD, NoSuchJob, WrongState),
        {"id": "1001", "delay": 60},
        {"due": 1795217097.354},
    ),
    "/cancel": Operation(
        topic_requests.CancelRequest, ("tag",), Count, BAD, {"tag": "user:7"}, {"count": 2}
    ),
    "/list": Operation(
        topic_requests.ListRequest,
        (),
        Page,
        BAD,
        {"topic": "order", "state": "delayed", "limit": 10},
        {"jobs": [FULL], "cursor": ""},
    ),
    "/take": Operation(
        topic_requests.TakeRequest,
        ("topic",),
        list[TakenJob],
        BAD,
        {"topic": "order", "end": 1795217040, "count": 100},
        [{"topic": "order", "id": "1001", "body": "unpaid?", "due": 1795217037.354}],
    ),
    "/forecast": Operation(
        topic_requests.ForecastRequest,
        ("start", "end", "step"),
        Forecast,
        BAD,
        {"topic": "order", "start": 1795214400, "end": 1795221600, "step": 3600},
        {"start": 1795214400.0, "step": 3600.0, "counts": [3, 0]},
    ),
    "/limit": Operation(
        topic_requests.LimitRequest,
        ("topic",),
        LimitState,
        (*BAD, WrongState),
        {"topic": "order", "rate": 50, "concurrency": 10},
        LIMIT,
    ),
    "/pause": Operation(
        topic_requests.PauseRequest, ("topic",), None, BAD, {"topic": "order", "seconds": 600}, None
    ),
    "/resume": Operation(
        topic_requests.TopicRequest, ("topic",), None, BAD, {"topic": "order"}, None
    ),
    "/purge": Operation(
        topic_requests.PurgeRequest,
        ("topic",),
        Count,
        BAD,
        {"topic": "order", "state": "buried"},
        {"count": 7},
    ),
    "/topics": OF_TOPICS,
    "/stats": Operation(None, (), Stats, (Unavailable,), None, STATS),
    "/whoami": Operation(
        None, (), Access, (), None, {"roles": ["consume"], "topics": ["orders.*"]}
    ),
    "/subscribe": Operation(
        subscriber_requests.SubscribeRequest,
        ("name", "topic", "url"),
        None,
        (*BAD, JobExists),
        {"name": "send-invoice", "topic": "paid", "url": "https://example.com/invoice"},
        None,
    ),
    "/unsubscribe": Operation(
        subscriber_requests.NameRequest,
        ("name",),
        None,
        (*BAD, NoSuchJob, WrongState),
        {"name": "send-invoice"},
        None,
    ),
    "/subscribers": Operation(
        subscriber_requests.SubscribersRequest,
        (),
        list[SubscriberState],
        BAD,
        {"topic": "paid"},
        [SUBSCRIBER],
    ),
    "/schedule": Operation(
        schedule_requests.ScheduleRequest,
        ("name", "topic"),
        Next,
        (*BAD, JobExists, TooLarge),
        {"name": "report", "topic": "report", "cron": "30 9 * * MON-FRI", "tz": "Asia/Shanghai"},
        {"next": 1795224600.0},
    ),
    "/unschedule": Operation(
        subscriber_requests.NameRequest,
        ("name",),
        None,
        (*BAD, NoSuchJob, WrongState),
        {"name": "report"},
        None,
    ),
    "/schedules": Operation(
        schedule_requests.SchedulesRequest,
        (),
        list[ScheduleState],
        BAD,
        {"topic": "report"},
        [SCHEDULE],
    ),
    "/healthz": Operation(None, (), None, (), None, None),
    "/readyz": Operation(None, (), Readiness | None, (Unavailable,), None, {"away": [2, 5]}),
}
