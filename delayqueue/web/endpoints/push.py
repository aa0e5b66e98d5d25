"""/push: a job, or an array of them."""

from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from itertools import islice
from typing import Any, Final

from pydantic import Field

from delayqueue.answers.jobs import NewId, Outcome
from delayqueue.domain.call import Call
from delayqueue.domain.job import IfExists, Job
from delayqueue.domain.push_fields import KEPT, NO_MAX_WAIT, WORDS
from delayqueue.domain.push_rules import NEW_ID, in_group
from delayqueue.errors import ADDED, OF_CODE, Code, Invalid, JobExists, QueueError, TopicFull, shown
from delayqueue.metrics import REQUEST_WARNINGS
from delayqueue.net.later import Later
from delayqueue.store.types import Pushed
from delayqueue.web.api import Api
from delayqueue.web.endpoint import BAD, PRODUCERS, InvalidItem, Stability, endpoint
from delayqueue.web.fields import (
    Body,
    Delay,
    DueTime,
    Group,
    IfExistsWord,
    JobId,
    Priority,
    PushedTopic,
    Seconds,
    ShortText,
    SomeSeconds,
    Tags,
    Traceparent,
    Ttr,
    check_body,
    is_traceparent,
    ms,
    optional,
    when_ms,
)
from delayqueue.web.http import HttpRequest
from delayqueue.web.requests import Request, RetryRequest
from delayqueue.web.targets import CallRequest, check_call
from delayqueue.web.warnings import NAME_CHARS, NAMES, OTHER_TOPICS, note

USUAL: Final = frozenset({"topic", "id", "delay", "due", "ttr", "body"})  # what most pushes give


class PushRequest(Request):
    """A job as a client pushes it."""

    topic: PushedTopic = Field(description=WORDS["topic"].en)
    id: JobId = Field(description=WORDS["id"].en)
    delay: Delay | None = optional(WORDS["delay"].en)
    due: DueTime | None = optional(WORDS["due"].en)
    ttr: Ttr = Field(description=WORDS["ttr"].en)
    body: Body | None = None
    tags: Tags | None = optional(WORDS["tags"].en)
    retry: RetryRequest | None = optional(WORDS["retry"].en)
    if_exists: IfExistsWord | None = optional(WORDS["if_exists"].en)
    max_wait: SomeSeconds | None = optional(WORDS["max_wait"].en)
    retain: Seconds | None = optional(WORDS["retain"].en)
    expire: SomeSeconds | None = optional(WORDS["expire"].en)
    priority: Priority | None = optional(WORDS["priority"].en)
    group: Group | None = optional(WORDS["group"].en)
    call: CallRequest | None = optional(WORDS["call"].en)
    traceparent: Traceparent | None = optional(WORDS["traceparent"].en)
    idempotency_key: ShortText | None = optional(WORDS["idempotency_key"].en)

    of_original = True
    report_first = "id"  # as in the original

    def named_topics(self) -> Iterable[str]:
        """The job's topic."""
        return (self.topic,)

    def job(self, api: Api, trace: str = "") -> Job:
        """The job; `trace` is the request's traceparent.

        Raises Invalid if it has both `delay` and `due`, or neither and one is required, "*" and a key, or `max_wait`
        and another `if_exists` than replace; TooLarge if its body is too large.
        """
        given = vars(self)  # an attribute of a model takes three times as long as a look-up
        if given["delay"] is None and given["due"] is None and api.config.require_delay:
            raise _no_delay(self.__pydantic_extra__ or ())
        body = given["body"] or ""
        check_body(body, api.config.max_body_bytes)
        delay_ms, due_ms = when_ms(given["delay"], given["due"])
        job_id = given["id"] if given["id"] != NEW_ID else self._made_id(api.new_id)
        # by position, and the rest only if it is given: twelve keywords take twice as long
        job = Job(given["topic"], job_id, body, given["ttr"] * 1000, delay_ms, due_ms)
        if trace or not USUAL.issuperset(self.__pydantic_fields_set__):
            self._add_options(job, api, trace)
        return job

    def _add_options(self, job: Job, api: Api, trace: str) -> None:  # noqa: C901  # a branch for each of them
        """What few pushes give."""
        given = vars(self)
        for name in KEPT:
            if given[name]:
                job.texts[name] = given[name]
        if given["group"]:
            api.jobs.check_group(job.id, given["group"])
        if trace:
            job.texts.setdefault("traceparent", trace)
        job.tags = given["tags"] or ()
        if given["retry"]:
            job.retry_ms = given["retry"].delays_ms
        if given["if_exists"]:
            job.if_exists = given["if_exists"]
        if given["max_wait"]:
            job.max_wait_ms = _max_wait_ms(given["max_wait"], job.if_exists)
        if given["retain"]:
            job.retain_ms = ms(given["retain"])
        if given["expire"]:
            job.expire_ms = ms(given["expire"])
        if given["priority"] is not None:
            job.priority = given["priority"]
        if given["call"]:
            job.call = given["call"].call()

    def _made_id(self, new_id: Callable[[], str]) -> str:
        """An id for "*". Raises Invalid if it has a key, which tells a repetition under one id only."""
        if self.idempotency_key is not None:
            raise Invalid.of(
                f'idempotency_key 需要自己的id：id为"{NEW_ID}"时每次推送都是另一个job',
                f'idempotency_key needs an id of your own: with "{NEW_ID}" each push is another job',
            )
        return in_group(self.group, new_id()) if self.group else new_id()


def _max_wait_ms(seconds: float, if_exists: IfExists) -> int:
    """The longest wait. Raises Invalid if a push puts no job off."""
    if if_exists != IfExists.REPLACE:
        raise Invalid(NO_MAX_WAIT)
    return ms(seconds)


@endpoint(
    "/push",
    PRODUCERS,
    errors=(*BAD, JobExists, TopicFull),
    asks={
        "topic": "order",
        "id": "1001",
        "delay": 1800,
        "ttr": 60,
        "body": "unpaid?",
        "tags": ["user:7"],
    },
    done=ADDED,
    stability=Stability.STABLE,
)
def push(
    api: Api, asked: PushRequest | list[PushRequest | InvalidItem], request: HttpRequest
) -> Later[NewId | None] | Coroutine[Any, Any, list[Outcome]]:
    """Add a job, or an array of jobs."""
    if isinstance(asked, list):
        return _push_many(api, asked, request)
    trace = _trace(request) if "traceparent" in request.headers else ""
    job = asked.job(api, trace)
    job.is_strict = api.config.strict
    if job.call is not None:
        _check_call(api, job.topic, job.call, request)
    return Later(api.jobs.push(job), partial(_pushed, api, asked, job, request))


def _pushed(
    api: Api, asked: PushRequest, job: Job, request: HttpRequest, pushed: Pushed
) -> NewId | None:
    """The answer to a job."""
    if pushed.other_topic is not None:
        _note_other_topic(api, pushed.other_topic, request)
    if pushed.code:
        raise refusal(pushed)
    return NewId(job.id) if job.id != asked.id else None


async def _push_many(
    api: Api, asked: list[PushRequest | InvalidItem], request: HttpRequest
) -> list[Outcome]:
    """Push an array; an invalid job does not affect the others."""
    trace = _trace(request)
    jobs = [_job_or_invalid(api, each, trace, request) for each in asked]
    pushed = iter(await api.jobs.push_many([job for job in jobs if isinstance(job, Job)]))
    added = api.responder.say(request, ADDED)
    results: list[Outcome] = []
    for job in jobs:
        if isinstance(job, InvalidItem):
            code, message = job.error.code.value, api.responder.say(request, job.error.text)
            results.append(Outcome(_id_of(job.item), code, message))
            continue
        done, message = next(pushed), added
        if done.other_topic is not None:
            _note_other_topic(api, done.other_topic, request)
        if done.code:
            message = api.responder.say(request, refusal(done).text)
        results.append(Outcome(job.id, done.code, message))
    return results


def _job_or_invalid(
    api: Api, asked: PushRequest | InvalidItem, trace: str, request: HttpRequest
) -> Job | InvalidItem:
    if isinstance(asked, InvalidItem):
        return asked
    try:
        job = asked.job(api, trace)
        if job.call is not None:
            _check_call(api, job.topic, job.call, request)
    except QueueError as error:
        return InvalidItem(asked, error)
    job.is_strict = api.config.strict
    return job


def _check_call(api: Api, topic: str, call: Call, request: HttpRequest) -> None:
    """Raises Forbidden if the server makes no calls, or not for this client, Invalid if not to this URL."""
    api.guard.check_caller(request, topic)
    check_call(api, call)


def _no_delay(unknown: Iterable[str]) -> Invalid:
    """The error of a push that does not say when; the names of its unknown fields say why, if one is misspelt."""
    names = ", ".join(shown(name[:NAME_CHARS]) for name in islice(unknown, NAMES))
    return Invalid.of(
        "delay 取值范围0 - (2^31 - 1)，必须给出 delay（立即到期写 0）或 due；require_delay = no 时视为 0"
        + (f"；未知字段 {names}" if names else ""),
        "delay: must be given, 0 if it is due at once, or due; require_delay = no takes it as 0"
        + (f"; unknown here: {names}" if names else ""),
    )


def refusal(pushed: Pushed) -> QueueError:
    """Why a job was not pushed: the topic of the other job with that id, or how many jobs its topic may have."""
    if pushed.code == Code.TOPIC_FULL:
        return TopicFull.at(*pushed.full)
    if pushed.code == Code.JOB_EXISTS and pushed.other_topic is not None:
        topic = shown(pushed.other_topic)
        return JobExists.of(f"topic {topic} 已有此id的job", f"topic {topic} has a job with this id")
    return OF_CODE[Code(pushed.code)]()


def _note_other_topic(api: Api, topic: str, request: HttpRequest) -> None:
    """Warn that a job of another topic has, or had, the id."""
    note(request, OTHER_TOPICS, [topic])
    api.queue.metrics.count(REQUEST_WARNINGS, "other_topic")


def _id_of(item: object) -> object:
    """The id of an invalid item, so that the client can find it."""
    if isinstance(item, PushRequest):
        return item.id
    return item.get("id") if isinstance(item, dict) else None


def _trace(request: HttpRequest) -> str:
    """The request's trace, for its jobs; "" if it has none, or an invalid one, which W3C says to ignore."""
    header: str | None = request.headers.get("traceparent")
    return header if header is not None and is_traceparent(header) else ""
