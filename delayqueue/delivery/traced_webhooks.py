"""OpenTelemetry spans for webhooks. Needs its packages: see server/tracing.py."""

from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

import aiohttp
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from delayqueue.delivery.outcome import CallOutcome, Event
from delayqueue.delivery.side_loop import SideLoop
from delayqueue.delivery.webhook import Webhooks
from delayqueue.domain.subscriber import Subscriber

W3C: Final = TraceContextTextMapPropagator()
DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class TracedWebhooks(Webhooks):
    """Each call is a span in the trace that pushed the job, and the receiver continues it.

    Of the URL it shows only host and port, and of the answer only the status: there may be secrets.
    """

    def __init__(
        self, side_loop: SideLoop, session: aiohttp.ClientSession, *, tracer: Tracer
    ) -> None:
        super().__init__(side_loop, session)
        self._tracer = tracer

    async def call(self, subscriber: Subscriber, job: Event) -> CallOutcome:
        """Call a subscriber's URL, in a span."""
        url = urlsplit(subscriber.url)
        with self._tracer.start_as_current_span(
            f"deliver {job.topic}",
            W3C.extract({"traceparent": job.traceparent}, Context()),
            SpanKind.CLIENT,
            {
                "messaging.system": "delay_queue",
                "messaging.operation.name": "deliver",
                "messaging.destination.name": job.topic,
                "messaging.consumer.group.name": subscriber.name,
                "messaging.message.id": job.id,
                "messaging.delay_queue.message.attempt": job.attempt,
                "http.request.method": subscriber.method.value,
                "server.address": url.hostname or "",
                "server.port": url.port or DEFAULT_PORTS[url.scheme],
            },
        ) as span:
            sent = {"traceparent": job.traceparent}
            W3C.inject(sent)
            outcome = await super().call(subscriber, replace(job, traceparent=sent["traceparent"]))
            if outcome.status:
                span.set_attribute("http.response.status_code", outcome.status)
            if not outcome.succeeded:
                reason = f"HTTP status {outcome.status}" if outcome.status else outcome.message
                span.set_attribute("error.type", str(outcome.status or "_OTHER"))
                span.set_status(StatusCode.ERROR, reason)
            return outcome
