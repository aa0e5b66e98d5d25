"""Requests and webhooks as spans of OpenTelemetry, as a collector receives them."""

import asyncio
import http.client
import re
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, NamedTuple

import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.sdk.trace import TracerProvider

from delayqueue.client import AsyncClient
from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError
from delayqueue.server.tracing import check_tracing
from tests.api_client import Api, open_api
from tests.processes import LOOPBACK, Processes, QueueServer, StoreServer, free_port, run_program
from tests.waiting import until

from .conftest import Shop
from .receiver import Answer

UNSET, ERROR = Status.STATUS_CODE_UNSET, Status.STATUS_CODE_ERROR
TRACE: Final = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN: Final = "00f067aa0ba902b7"


class Seen(NamedTuple):
    """A span, and its resource: what its process says about itself."""

    span: Span
    service: dict[str, str]

    @property
    def attributes(self) -> dict[str, str | int]:
        return {
            each.key: each.value.string_value or each.value.int_value
            for each in self.span.attributes
        }

    @property
    def place(self) -> tuple[str, str]:
        """Its trace, and its parent in it."""
        return self.span.trace_id.hex(), self.span.parent_span_id.hex()

    @property
    def ids(self) -> str:
        """The part of a traceparent that is its own."""
        return f"{self.span.trace_id.hex()}-{self.span.span_id.hex()}"


class Collector:
    """Takes spans by OTLP, and returns those that began while a test ran."""

    def __init__(self) -> None:
        self._taken: list[Seen] = []
        self.since_ns = 0

    def take(self, body: bytes) -> None:
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = {each.key: each.value.string_value for each in group.resource.attributes}
            self._taken += [
                Seen(span, service) for scope in group.scope_spans for span in scope.spans
            ]

    def spans(self, name: str) -> list[Seen]:
        return [
            seen
            for seen in self._taken
            if seen.span.name == name and seen.span.start_time_unix_nano >= self.since_ns
        ]

    async def span(self, name: str) -> Seen:
        await until(lambda: bool(self.spans(name)))
        [seen] = self.spans(name)
        return seen


@pytest.fixture(scope="module")
def collecting() -> Iterator[Collector]:
    """A collector. Servers that start from now on send to it, because of OTEL_* variables."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # its name
            collector.take(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with (
        ThreadingHTTPServer((LOOPBACK, 0), Handler) as server,
        pytest.MonkeyPatch.context() as set_,
    ):
        set_.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{LOOPBACK}:{server.server_port}")
        set_.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield collector
        server.shutdown()
        thread.join()


@pytest.fixture
def collector(collecting: Collector) -> Collector:
    collecting.since_ns = time.time_ns()
    return collecting


@pytest.fixture(scope="module")
def server(processes: Processes, redis_server: StoreServer, collecting: Collector) -> QueueServer:
    return processes.server(
        redis_server, traces="yes", webhook_allow=f"{LOOPBACK}/32", language="en"
    )


async def test_client_server_and_webhook_are_one_trace(
    server: QueueServer,
    shop: Shop,
    collector: Collector,
    topic: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", TracerProvider())
    await shop.subscribe("hook")
    async with AsyncClient(server.url) as queue:
        with trace.get_tracer("tests").start_as_current_span("order") as order:
            job_id = await queue.push(topic)
    pushed, delivered = await collector.span("POST /push"), await collector.span(f"deliver {topic}")
    trace_id = trace.format_trace_id(order.get_span_context().trace_id)
    sent = delivered.place[1]
    assert pushed.place == delivered.place == (trace_id, sent)
    assert sent != trace.format_span_id(order.get_span_context().span_id)
    assert pushed.span.kind == Span.SPAN_KIND_SERVER
    assert pushed.attributes == {
        "http.request.method": "POST",
        "http.route": "/push",
        "http.response.status_code": 200,
        "url.scheme": "http",
        "url.path": "/push",
        "client.address": LOOPBACK,
        "delay_queue.code": 0,
    }
    assert delivered.span.kind == Span.SPAN_KIND_CLIENT
    assert delivered.attributes == {
        "messaging.system": "delay_queue",
        "messaging.operation.name": "deliver",
        "messaging.destination.name": topic,
        "messaging.consumer.group.name": f"{topic}/hook",
        "messaging.message.id": job_id,
        "messaging.delay_queue.message.attempt": 1,
        "http.request.method": "POST",
        "http.response.status_code": 200,
        "server.address": LOOPBACK,
        "server.port": shop.receiver.port,
    }
    assert (pushed.span.status.code, delivered.span.status.code) == (UNSET, UNSET)
    [call] = shop.receiver.to("hook")
    assert call.headers["traceparent"][3:-3] == delivered.ids


async def test_pushes_that_go_together_are_in_the_trace_of_the_first(
    server: QueueServer, collector: Collector, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", TracerProvider())
    async with AsyncClient(server.url) as queue:
        await asyncio.gather(*(queue.push(topic, str(n)) for n in range(3)))
        told = {job.body: job.traceparent for job in await queue.pop_many(topic, count=3, wait=5)}
    pushed = await collector.span("POST /push")
    assert told["0"][3:-3] == "-".join(pushed.place)
    assert len(set(told.values())) == 3


async def test_a_job_without_a_trace_has_that_of_its_request(
    server: QueueServer, api: Api, collector: Collector, topic: str
) -> None:
    for n in range(2):  # the server remembers the second head
        (await api.push(topic=topic, id=f"{topic}/{n}")).ok()
    told = [(await api.pop(topic)).ok()["traceparent"][3:-3] for _ in range(2)]
    await until(lambda: len(collector.spans("POST /push")) == 2)
    pushed = collector.spans("POST /push")
    assert told == [each.ids for each in pushed]
    assert len({each.place for each in pushed}) == 2
    assert pushed[0].service["service.name"] == "delay-queue"
    assert pushed[0].service["service.instance.id"].endswith(f":{server.port} #1")


async def test_a_request_that_the_lane_refuses_is_a_span_too(
    server: QueueServer, collector: Collector
) -> None:
    connection = http.client.HTTPConnection(LOOPBACK, server.port, timeout=10)
    headers: dict[str, str | bytes] = {
        "traceparent": f"00-{TRACE}-{SPAN}-01",
        "User-Agent": b"caf\xe9",
    }
    connection.request("GET", "/topics", headers=headers)
    assert connection.getresponse().status == 200
    connection.close()
    seen = await collector.span("GET /topics")
    assert seen.place == (TRACE, SPAN)
    assert seen.attributes["user_agent.original"] == "caf\\udce9"


async def test_a_refusal_is_no_error_of_the_server(api: Api, collector: Collector) -> None:
    await api.push(topic="")
    await api.call("/nowhere", {})
    refused, unknown = await collector.span("POST /push"), await collector.span("POST")
    assert refused.attributes["delay_queue.code"] == 1
    assert "http.route" not in unknown.attributes
    assert unknown.attributes["http.response.status_code"] == 404
    assert (refused.span.status.code, unknown.span.status.code) == (UNSET, UNSET)


async def test_a_failed_webhook_is_an_error_without_the_text_of_its_answer(
    server: QueueServer, shop: Shop, collector: Collector, topic: str
) -> None:
    shop.receiver.says("hook", Answer(500, "password"))
    await shop.subscribe("hook", retry={"delays": []})
    await shop.push()
    status = (seen := await collector.span(f"deliver {topic}")).span.status
    assert (status.code, status.message) == (ERROR, "HTTP status 500")
    assert seen.attributes["error.type"] == "500"


async def test_what_nobody_answers_is_an_error_with_its_reason(
    server: QueueServer, shop: Shop, collector: Collector, topic: str
) -> None:
    options = {"name": topic, "topic": topic, "url": f"http://{LOOPBACK}:{free_port()}"}
    (await shop.api.call("/subscribe", options | {"retry": {"delays": []}})).ok()
    await shop.push()
    status = (await collector.span(f"deliver {topic}")).span.status
    assert status.code == ERROR
    assert "onnect" in status.message


async def test_a_server_that_ends_sends_its_last_spans_and_none_of_probes(
    processes: Processes,
    redis_server: StoreServer,
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
    topic: str,
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "60000")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=shop-queue")
    server = processes.server(redis_server, traces="yes")
    async with open_api(server.url) as api:
        (await api.push(topic=topic, id=topic)).ok()
    assert await asyncio.to_thread(server.stop) == 0
    [pushed] = collector.spans("POST /push")
    assert pushed.service["service.name"] == "shop-queue"
    assert not collector.spans("GET /readyz")  # by which a test sees that a server is up


WRONG: Final = [
    ({"OTEL_TRACES_EXPORTER": "nowhere"}, "no exporter nowhere is installed"),
    (
        {"OTEL_EXPORTER_OTLP_PROTOCOL": "pigeon"},
        "the protocol pigeon: must be one of http/protobuf",
    ),
    ({"OTEL_BSP_MAX_QUEUE_SIZE": "-1"}, "correct the OTEL_* variables"),
]


@pytest.mark.parametrize(("variables", "reason"), WRONG)
def test_a_wrong_variable_is_named(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], reason: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StartupError, match=f"^traces = yes: .*{re.escape(reason)}"):
        check_tracing(Config(traces=True))


@pytest.mark.parametrize("verb", [(), ("check",)])
def test_a_server_that_cannot_trace_says_so_and_so_does_check(
    redis_server: StoreServer, monkeypatch: pytest.MonkeyPatch, verb: tuple[str, ...]
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "nowhere")
    settings = redis_server.settings(redis_server.new_database())
    address = f"{LOOPBACK}:{free_port()}"
    ended = run_program(*verb, settings=settings | {"traces": "yes", "bind_address": address})
    assert ended.returncode != 0
    assert "DELAYQUEUE_TRACES: traces = yes: no exporter nowhere is installed" in ended.stderr


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)
    with pytest.raises(StartupError, match=r"pip install 'delay-queue-server\[otel\]'"):
        check_tracing(Config(traces=True))
    check_tracing(Config())
