"""Subscribers: webhooks that the server calls with a topic's due jobs."""

from typing import Annotated, Any, Final

from pydantic import Field

from delayqueue.answers.answer import LEFT_OUT
from delayqueue.answers.subscribers import Subscriber, SubscriberPage, Trial
from delayqueue.domain import subscriber as rules
from delayqueue.domain.job import CHANGE, IfExists
from delayqueue.domain.retry import duration_ms
from delayqueue.domain.subscriber import OnFailure, Payload
from delayqueue.engine.subscribers import calling_order
from delayqueue.errors import Invalid, JobExists, NoSuchJob, TooLarge, WrongState
from delayqueue.web.api import Api
from delayqueue.web.endpoint import ADMINS, BAD, OF_JOB, VIEWERS, Large, endpoint
from delayqueue.web.fields import Body, Bounds, PushedTopic, Validate, check_body, one_of, optional
from delayqueue.web.requests import IfNamed, NameRequest, PagedRequest, RetryRequest
from delayqueue.web.targets import Expect, Headers, MethodWord, Timeout, Url, check_target

# the fields that are a Subscriber's as they are
PLAIN: Final = {
    *("name", "topic", "url", "method", "order", "concurrency", "secret", "expect", "on_failure"),
    "payload",
}
SUBSCRIBER: Final = Subscriber(
    name="send-invoice",
    topic="paid",
    order=10,
    url="https://example.com/invoice",
    handler="",
    timeout=30.0,
    retry=(5.0, 300.0, 1800.0),
    concurrency=10,
    signed=True,
    declared=False,
    expect="",
    on_failure="bury",
    payload="body",
    method="POST",
    headers={"Authorization": "***"},
    paused=None,
    calls=LEFT_OUT,
)


Order = Annotated[
    int,
    Bounds(-rules.MAX_ORDER, rules.MAX_ORDER),
    Field(
        description="A topic's subscribers are called in this order, those with the same one by name; 0 by default."
    ),
]
Calls = Annotated[
    int,
    Bounds(1, rules.MAX_CONCURRENCY),
    Field(description="The most calls at once from each server process; 10 by default."),
]
Secret = Annotated[
    str,
    Validate(rules.check_secret),
    Field(
        description="The key that signs webhooks, as Standard Webhooks has it: `whsec_` and base64; none by default."
    ),
]
OnFailureWord = Annotated[
    OnFailure,
    one_of(*OnFailure),
    Field(
        description=(
            "What happens to the job after the last failure: `bury`, the default, or `continue`: "
            "it is finished all the same."
        )
    ),
]
PayloadWord = Annotated[
    Payload,
    one_of(*Payload),
    Field(
        description=(
            "What is sent: the job's `body`, the default, or an `event`: JSON with the job and the results so far."
        )
    ),
]


class SubscribeRequest(NameRequest):
    """A subscriber to register."""

    topic: PushedTopic | None = optional(
        "The topic whose jobs it gets; required unless it is changed."
    )
    order: Order | None = None
    url: Url | None = optional(
        "The http or https URL that jobs are sent to; required unless it is changed."
    )
    method: MethodWord | None = None
    headers: Headers | None = None
    timeout: Timeout | None = None
    retry: RetryRequest | None = optional(
        "When a failed call is repeated, for jobs without a `retry`: after 5s, 5m, 30m, 2h, 5h, 10h by default."
    )
    concurrency: Calls | None = None
    secret: Secret | None = None
    expect: Expect | None = None
    on_failure: OnFailureWord | None = None
    payload: PayloadWord | None = None
    if_exists: IfNamed | None = None

    def subscriber(self) -> rules.Subscriber:
        """The subscriber; rules.Subscriber has the defaults. Raises Invalid without a topic or a URL."""
        if self.topic is None:
            raise Invalid.of("topic不能为空", "topic: must not be empty")
        if self.url is None:
            check_target("url", rules.check_url, "")
        return rules.Subscriber(**self.given())

    def given(self) -> dict[str, Any]:
        """The fields of a Subscriber that are given."""
        given: dict[str, Any] = self.model_dump(include=PLAIN, exclude_none=True)
        if self.headers is not None:
            given["headers"] = tuple(self.headers.items())
        if self.timeout is not None:
            given["timeout_ms"] = duration_ms(self.timeout)
        if self.retry is not None:
            given["retry_ms"] = self.retry.delays_ms
        return given


class SubscribersRequest(PagedRequest):
    """The subscribers of one topic, or all."""

    calls: bool | None = optional("Whether to include statistics of their calls.")


class TrialRequest(NameRequest):
    """A subscriber to call with a made-up job."""

    body: Body | None = optional("The body of the made-up job.")


@endpoint(
    "/subscribe",
    ADMINS,
    errors=(*BAD, NoSuchJob, JobExists),
    asks={"name": "send-invoice", "topic": "paid", "url": "https://example.com/invoice"},
)
async def subscribe(api: Api, asked: SubscribeRequest) -> None:
    """Register a webhook for a topic's due jobs."""
    subscriber = None if asked.if_exists == CHANGE else asked.subscriber()
    if asked.url is not None:
        check_target("url", api.check_url, asked.url)
    if subscriber is None:
        await api.queue.subscribers.change(asked.name, asked.given())
    else:
        await api.queue.subscribers.register(subscriber, asked.if_exists or IfExists.FAIL)


@endpoint("/unsubscribe", ADMINS, errors=OF_JOB, asks={"name": "send-invoice"})
async def unsubscribe(api: Api, asked: NameRequest) -> None:
    """Remove a subscriber."""
    await api.queue.subscribers.remove(asked.name)


@endpoint("/subscribers", VIEWERS, asks={"topic": "paid"}, answers=[SUBSCRIBER])
async def subscribers(
    api: Api, asked: SubscribersRequest
) -> Large[list[Subscriber]] | Large[SubscriberPage]:
    """List subscribers in calling order."""
    every = await api.queue.subscribers.all()
    found, cursor = asked.page("subscribers", every, calling_order)
    if asked.calls:
        found = await api.queue.subscribers.with_calls(found)
    return Large(found) if cursor is None else Large(SubscriberPage(found, cursor))


@endpoint("/pause-subscriber", ADMINS, errors=(*BAD, NoSuchJob), asks={"name": "send-invoice"})
async def pause_subscriber(api: Api, asked: NameRequest) -> None:
    """Pause a subscriber's calls."""
    await api.queue.subscribers.pause(asked.name)


@endpoint("/resume-subscriber", ADMINS, errors=(*BAD, NoSuchJob), asks={"name": "send-invoice"})
async def resume_subscriber(api: Api, asked: NameRequest) -> None:
    """Resume a subscriber's calls."""
    await api.queue.subscribers.resume(asked.name)


@endpoint(
    "/try-subscriber",
    ADMINS,
    errors=(*OF_JOB, TooLarge),
    asks={"name": "send-invoice", "body": "{}"},
    answers={"succeeded": True, "status": 200, "took": 0.12, "message": "200 thanks"},
)
async def try_subscriber(api: Api, asked: TrialRequest) -> Trial:
    """Call a webhook with a made-up job."""
    body = asked.body or ""
    check_body(body, api.config.max_body_bytes)
    subscriber = await api.queue.subscribers.named(asked.name)
    if not subscriber.url:
        raise WrongState.of(
            f"{asked.name} 没有url（旧版服务的Python函数），无法试调",
            f"{asked.name}: has no url, it is a Python function of an older server; only a url can be tried",
        )
    return await api.try_webhook(subscriber, body)
