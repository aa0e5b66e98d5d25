"""Pushes and handlers as spans of OpenTelemetry, and the trace that goes with a job."""

import asyncio
from typing import Any, Final

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from delayqueue import Bury, Retry, Worker, testing
from delayqueue.client import AsyncClient, Client, Invalid, Job, TransportError
from tests.client.conftest import Caller, at_work, until_state
from tests.processes import LOOPBACK, QueueServer, free_port, python
from tests.waiting import until

TRACE: Final = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TRACER: Final = "tests"  # the tracer of a program's own spans


class Spans:
    """What was exported."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if span.name == name]

    def the(self, name: str) -> ReadableSpan:
        [span] = self.named(name)
        return span

    async def ended(self, name: str, count: int = 1) -> None:
        await until(lambda: len(self.named(name)) >= count)


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Spans:
    """As after set_tracer_provider(), which can be called only once."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return Spans(exporter)


def context_of(span: ReadableSpan) -> trace.SpanContext:
    assert isinstance(span.context, trace.SpanContext)
    return span.context


def traceparent(span: ReadableSpan) -> str:
    context = context_of(span)
    ids = (trace.format_trace_id(context.trace_id), trace.format_span_id(context.span_id))
    return "-".join(("00", *ids, f"{context.trace_flags:02x}"))


def linked(span: ReadableSpan) -> list[str]:
    return [
        f"{trace.format_trace_id(link.context.trace_id)}-{trace.format_span_id(link.context.span_id)}"
        for link in span.links
    ]


def ids_in(told: str) -> str:
    return told[3:-3]


async def test_a_push_is_a_span_whose_context_goes_with_the_job(
    client: Caller, server: QueueServer, spans: Spans, topic: str
) -> None:
    with trace.get_tracer(TRACER).start_as_current_span("order") as order:
        job_id = await client.push(topic)
    span = spans.the(f"send {topic}")
    assert span.kind is SpanKind.PRODUCER
    assert dict(span.attributes or {}) == {
        "messaging.system": "delay_queue",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": topic,
        "messaging.message.id": job_id,
        "server.address": LOOPBACK,
        "server.port": server.port,
    }
    assert span.parent == order.get_span_context()
    job = await client.pop(topic, wait=20)
    assert job.traceparent == traceparent(span)
    await client.finish(job)
    assert not spans.named("send")


async def test_pushes_of_the_same_moment_have_a_span_each(
    server: QueueServer, spans: Spans, topic: str
) -> None:
    async with AsyncClient(server.url) as queue:
        await asyncio.gather(*(queue.push(topic) for _ in range(5)))
        told = {job.id: job.traceparent for job in await queue.pop_many(topic, count=5, wait=20)}
    sent = spans.named(f"send {topic}")
    assert told == {span.attributes["messaging.message.id"]: traceparent(span) for span in sent}  # type: ignore[index]
    assert len(told) == 5


async def test_the_trace_that_the_caller_gives_goes_with_the_job(
    client: Caller, spans: Spans, topic: str
) -> None:
    await client.push(topic, traceparent=TRACE)
    assert (await client.pop(topic, wait=20)).traceparent == TRACE
    span = spans.the(f"send {topic}")
    assert (span.kind, linked(span)) == (SpanKind.CLIENT, [ids_in(TRACE)])


async def test_many_jobs_are_one_span(client: Caller, spans: Spans, topic: str) -> None:
    jobs = [Job(topic=topic), Job(topic=topic, traceparent=TRACE), Job(topic=topic)]
    await client.push_many(jobs)
    span = spans.the(f"send {topic}")
    told = {job.id: job.traceparent for job in await client.pop_many(topic, count=3, wait=20)}
    own = traceparent(span)
    assert told == dict(zip((job.id for job in jobs), (own, TRACE, own), strict=True))
    assert (span.kind, linked(span)) == (SpanKind.PRODUCER, [ids_in(TRACE)])
    attributes = span.attributes or {}
    assert attributes["messaging.batch.message_count"] == 3
    assert "messaging.message.id" not in attributes
    assert [job.traceparent for job in jobs] == [None, TRACE, None]


async def test_a_span_of_several_topics_names_none(
    client: Caller, spans: Spans, topic: str
) -> None:
    await client.push_many([Job(topic=topic), Job(topic=f"{topic}-2")])
    assert "messaging.destination.name" not in (spans.the("send").attributes or {})


async def test_a_push_that_fails_says_why(client: Caller, spans: Spans) -> None:
    with pytest.raises(Invalid):
        await client.push("a,b")
    span = spans.the("send a,b")
    assert span.status.status_code is StatusCode.ERROR
    assert (span.attributes or {})["error.type"] == "delayqueue.errors.Invalid"
    assert [event.name for event in span.events] == ["exception"]


async def test_other_calls_are_no_spans(client: Caller, spans: Spans, topic: str) -> None:
    await client.pop(topic, wait=0)
    await client.topics(topic)
    assert not spans.named("send")


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "plain"])
async def test_a_run_of_handlers_is_a_trace_of_its_own_linked_to_the_push(
    server: QueueServer, spans: Spans, topic: str, *, is_async: bool
) -> None:
    worker = Worker(server.url)

    def plain(job: Any) -> None:
        with trace.get_tracer(TRACER).start_as_current_span("work"):
            pass

    async def asynchronous(job: Any) -> None:
        await asyncio.sleep(0)
        plain(job)

    worker.on(topic)(asynchronous if is_async else plain)
    with trace.get_tracer(TRACER).start_as_current_span("program"):  # one that never ends
        async with AsyncClient(server.url) as queue, at_work(worker):
            job_id = await queue.push(topic)
            await spans.ended(f"process {topic}")
    span = spans.the(f"process {topic}")
    assert (span.kind, span.parent) == (SpanKind.CONSUMER, None)
    assert dict(span.attributes or {}) == {
        "messaging.system": "delay_queue",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": topic,
        "messaging.message.id": job_id,
        "messaging.delay_queue.message.attempt": 1,
    }
    assert linked(span) == [ids_in(traceparent(spans.the(f"send {topic}")))]
    assert span.status.status_code is StatusCode.UNSET
    assert spans.the("work").parent == context_of(span)


class Told(BaseException):
    """It is not even an Exception."""


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("no address"), "builtins.ValueError"),
        (Bury("no address"), "delayqueue.worker.verdict.Bury"),
        (IndexError("no address"), "builtins.IndexError"),
        (Told("no address"), f"{__name__}.Told"),
    ],
)
async def test_a_failed_run_says_why_and_the_next_one_is_a_span_too(
    server: QueueServer, spans: Spans, topic: str, error: BaseException, kind: str
) -> None:
    worker = Worker(server.url)
    runs: list[int] = []

    @worker.on(topic, retry=["10ms"], bury_on=IndexError)
    async def handle(job: Any) -> None:
        runs.append(job.attempt)
        if len(runs) == 1:
            raise error

    async with AsyncClient(server.url) as queue, at_work(worker):
        job_id = await queue.push(topic)
        await spans.ended(f"process {topic}")
        if isinstance(error, (Bury, IndexError)):
            await until_state(queue, job_id, "buried")
            await queue.kick(job_id)
        await spans.ended(f"process {topic}", 2)
    failed, done = spans.named(f"process {topic}")
    assert (failed.status.status_code, failed.status.description) == (
        StatusCode.ERROR,
        "no address",
    )
    assert (failed.attributes or {})["error.type"] == kind
    [event] = failed.events
    assert (event.attributes or {})["exception.message"] == "no address"
    assert done.status.status_code is StatusCode.UNSET
    assert linked(failed) == linked(done) != []
    assert context_of(failed).trace_id != context_of(done).trace_id


def test_a_queue_in_memory_makes_the_same_spans(spans: Spans) -> None:
    worker = Worker()

    @worker.on("t")
    def handle(job: Any) -> None:
        assert job.traceparent == traceparent(spans.the("send t"))

    queue = testing.Queue(worker)
    queue.push("t")
    [(_, verdict)] = queue.advance()
    assert verdict.message == ""
    assert linked(spans.the("process t")) == [ids_in(traceparent(spans.the("send t")))]


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def test_an_exception_without_a_text_is_a_failure_like_others(spans: Spans) -> None:
    worker = Worker()

    @worker.on("t")
    def handle(job: Any) -> None:
        raise Mute

    assert testing.run(worker, "t", "").message.startswith("Mute: ")
    status = spans.the("process t").status
    assert (status.status_code, "Mute" in (status.description or "")) == (StatusCode.ERROR, True)


async def test_not_yet_is_no_failure(server: QueueServer, spans: Spans, topic: str) -> None:
    worker = Worker(server.url)

    @worker.on(topic)
    def handle(job: Any) -> None:
        raise Retry(3600, "not yet")

    async with AsyncClient(server.url) as queue, at_work(worker):
        await queue.push(topic)
        await spans.ended(f"process {topic}")
    span = spans.the(f"process {topic}")
    assert (span.status.status_code, span.events) == (StatusCode.UNSET, ())


async def test_where_no_server_is_the_span_says_so(spans: Spans) -> None:
    with (
        Client(f"http://{LOOPBACK}:{free_port()}", retries=0) as queue,
        pytest.raises(TransportError),
    ):
        queue.push("t")
    error_type = (spans.the("send t").attributes or {})["error.type"]
    assert error_type == "delayqueue.client.api_request.TransportError"


async def test_without_an_sdk_jobs_have_no_trace(client: Caller, topic: str) -> None:
    await client.push(topic)
    assert not (await client.pop(topic, wait=20)).traceparent


NOTHING_LOADED: Final = """
import sys
if sys.argv[3] == "absent":
    sys.modules["opentelemetry"] = None
from delayqueue import Client, Worker
worker = Worker(sys.argv[1])
@worker.on(sys.argv[2])
def handle(job):
    print(repr(job.traceparent), flush=True)
    import signal
    signal.raise_signal(signal.SIGTERM)
with Client(sys.argv[1]) as queue:
    queue.push(sys.argv[2])
worker.run()
print([name for name in sys.modules if name.startswith("opentelemetry.")])
"""


@pytest.mark.parametrize("package", ["absent", "unused"])
def test_a_program_that_does_not_trace_loads_nothing(
    server: QueueServer, topic: str, package: str
) -> None:
    ran = python("-c", NOTHING_LOADED, server.url, topic, package)
    assert ran.stdout.split("\n")[:2] == ["''", "[]"], ran.stderr
