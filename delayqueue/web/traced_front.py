"""OpenTelemetry spans for requests, by its conventions for HTTP. Needs its packages: see server/tracing.py."""

from http import HTTPMethod
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from delayqueue.domain.text import clean
from delayqueue.errors import Code
from delayqueue.web.api import Api
from delayqueue.web.front import Cycle, Front
from delayqueue.web.http import HttpRequest, Peer

W3C: Final = TraceContextTextMapPropagator()


class TracedFront(Front):
    """Answers each request in a span, except read-only GET requests: probes, metrics, pages."""

    def __init__(self, api: Api, *, tracer: Tracer, scheme: str) -> None:
        super().__init__(api)
        self._only_read = {
            path
            for path, methods in self._endpoints.items()
            if any(each.methods == ("GET",) for each in methods.values())
        }
        self._tracer = tracer
        self._scheme = scheme

    def begin(self, request: HttpRequest, body: bytes | None, client: Peer) -> None:
        """Begin to answer a client's request. Its jobs get the span's context, unless they bring one.

        The span stays current in all callbacks and tasks of the request.
        """
        if request.path in self._only_read:
            super().begin(request, body, client)
            return
        with trace.use_span(self._begin(request), end_on_exit=False):
            super().begin(request, body, client)

    def _begin(self, request: HttpRequest) -> Span:
        parent = W3C.extract(request.headers, Context())
        is_known = request.path in self._endpoints
        agent = request.headers.get("user-agent")
        method = request.method if request.method in HTTPMethod.__members__ else "_OTHER"
        span = self._tracer.start_span(
            f"{method} {request.path}" if is_known else method.replace("_OTHER", "HTTP"),
            parent,
            SpanKind.SERVER,
            {
                "http.request.method": method,
                "url.scheme": self._scheme,
                "url.path": clean(request.path),
                **({"http.route": request.path} if is_known else {}),
                **({"client.address": request.peer} if request.peer else {}),
                **({"user_agent.original": clean(agent)} if agent else {}),
            },
        )
        if span.is_recording() and not trace.get_current_span(parent).get_span_context().is_valid:
            headers = dict(request.headers)  # the lane caches them for other requests
            W3C.inject(headers, trace.set_span_in_context(span))
            request.headers = headers
        return span

    def _record(self, cycle: Cycle, code: Code, status: int) -> None:
        """Record the answer, also in the span of its request, which ends."""
        super()._record(cycle, code, status)
        if cycle.request.path in self._only_read:
            return
        span = trace.get_current_span()
        span.set_attribute("http.response.status_code", status)
        span.set_attribute("delay_queue.code", int(code))
        if status >= 500:
            span.set_attribute("error.type", str(status))
            span.set_status(StatusCode.ERROR)
        span.end()

    def _gone(self, cycle: Cycle) -> None:
        """The client is gone: the span has no answer."""
        super()._gone(cycle)
        if cycle.request.path not in self._only_read:
            trace.get_current_span().end()
