"""OpenTelemetry spans by its semantic conventions for messaging. tracing.py imports this only if they are wanted."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from delayqueue import __version__
from delayqueue.domain.text import message_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opentelemetry.trace import Span, Tracer, TracerProvider

    from delayqueue.answers.jobs import ReservedJob
    from delayqueue.client.address import ServerAddress
    from delayqueue.client.api_request import ApiRequest

T = TypeVar("T")

SYSTEM: Final = "delay_queue"
W3C: Final[TraceContextTextMapPropagator] = TraceContextTextMapPropagator()


@contextmanager
def sending(request: ApiRequest[T], to: ServerAddress) -> Iterator[ApiRequest[T]]:
    """A span for a push. Gives the request with its context in the jobs; those that bring their own are linked."""
    is_batch = isinstance(request.json, list)
    jobs: list[dict[str, Any]] = request.json if is_batch else [request.json]
    topics = {str(job["topic"]) for job in jobs}
    topic = topics.pop() if len(topics) == 1 else None
    brought = dict.fromkeys(str(job["traceparent"]) for job in jobs if "traceparent" in job)
    makes_context = any("traceparent" not in job for job in jobs)
    span = _tracer(trace.get_tracer_provider()).start_span(
        _name("send", topic),
        kind=SpanKind.PRODUCER if makes_context else SpanKind.CLIENT,
        attributes={
            **_attributes("send", topic),
            "server.address": to.host,
            "server.port": to.port,
            **(
                {"messaging.batch.message_count": len(jobs)}
                if is_batch
                else {"messaging.message.id": str(jobs[0]["id"])}
            ),
        },
        links=_links(brought),
    )
    with _during(span):
        context: dict[str, str] = {}
        W3C.inject(context)
        own = {name: value for name, value in context.items() if name == "traceparent"}
        sent = [own | job for job in jobs]
        yield replace(
            request, json=sent if is_batch else sent[0], traceparent=own.get("traceparent", "")
        )


@contextmanager
def processing(job: ReservedJob, no_failure: type[BaseException]) -> Iterator[None]:
    """A span for a run of handlers: a trace of its own, as it may run days later, linked to the push."""
    span = _tracer(trace.get_tracer_provider()).start_span(
        _name("process", job.topic),
        context=Context(),
        kind=SpanKind.CONSUMER,
        attributes={
            **_attributes("process", job.topic),
            "messaging.message.id": job.id,
            f"messaging.{SYSTEM}.message.attempt": job.attempt,
        },
        links=_links([job.traceparent]),
    )
    with _during(span, no_failure):
        yield


@contextmanager
def _during(span: Span, *no_failure: type[BaseException]) -> Iterator[None]:
    """Make the span current, and end it. Unlike use_span(), any exception counts as a failure, as it does for a job."""
    with trace.use_span(
        span, end_on_exit=True, record_exception=False, set_status_on_exception=False
    ):
        try:
            yield
        except BaseException as error:
            if not isinstance(error, no_failure):
                kind = type(error)
                span.set_attribute("error.type", f"{kind.__module__}.{kind.__qualname__}")
                span.set_status(StatusCode.ERROR, message_of(error))
                with suppress(Exception):  # its __str__ may raise, too
                    span.record_exception(error)
            raise


def _name(operation: str, topic: str | None) -> str:
    return operation if topic is None else f"{operation} {topic}"


def _attributes(operation: str, topic: str | None) -> dict[str, str]:
    attributes = {
        "messaging.system": SYSTEM,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
    }
    return attributes if topic is None else attributes | {"messaging.destination.name": topic}


def _links(traceparents: Iterable[str]) -> list[Link]:
    contexts = (
        trace.get_current_span(W3C.extract({"traceparent": each}, Context())).get_span_context()
        for each in traceparents
    )
    return [Link(context) for context in contexts if context.is_valid]


@lru_cache(maxsize=1)  # creating one is slow, and repeats warnings that were already shown
def _tracer(provider: TracerProvider) -> Tracer:
    return provider.get_tracer("delayqueue", __version__)
