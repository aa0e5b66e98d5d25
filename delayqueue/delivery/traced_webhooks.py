"""OpenTelemetry spans for webhooks. Needs its packages: see server/tracing.py."""

from contextlib import suppress
from dataclasses import replace
from typing import Final

import aiohttp
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from delayqueue.delivery.outcome import Event, WebhookOutcome
from delayqueue.delivery.side_loop import SideLoop
from delayqueue.delivery.urls import request_url
from delayqueue.delivery.webhook import Webhooks
from delayqueue.domain.subscriber import Subscriber
from delayqueue.errors import BadValue

W3C: Final = TraceContextTextMapPropagator()


class TracedWebhooks(Webhooks):
    """Each call is a span in the trace that pushed the job, and the receiver continues it.

    Of the URL it shows only host and port, and of the answer only the status: there may be secrets.
    """

    def __init__(
        self, side_loop: SideLoop, session: aiohttp.ClientSession, *, tracer: Tracer
    ) -> None:
        super().__init__(side_loop, session)
        self._tracer = tracer

    async def call(self, subscriber: Subscriber, job: Event) -> WebhookOutcome:
        """Call a subscriber's URL, in a span."""
        trace = job.texts.get("traceparent", "")
        with self._tracer.start_as_current_span(
            f"deliver {job.topic}",
            W3C.extract({"traceparent": trace}, Context()),
            SpanKind.CLIENT,
            {
                "messaging.system": "delay_queue",
                "messaging.operation.name": "deliver",
                "messaging.destination.name": job.topic,
                "messaging.consumer.group.name": subscriber.name,
                "messaging.message.id": job.id,
                "messaging.delay_queue.message.attempt": job.attempt,
                "http.request.method": subscriber.method.value,
                **_server(subscriber.url),
            },
        ) as span:
            sent = {"traceparent": trace}
            W3C.inject(sent)
            outcome = await super().call(subscriber, replace(job, texts={**job.texts, **sent}))
            if outcome.status:
                span.set_attribute("http.response.status_code", outcome.status)
            if not outcome.succeeded:
                reason = f"HTTP status {outcome.status}" if outcome.status else outcome.message
                span.set_attribute("error.type", str(outcome.status or "_OTHER"))
                span.set_status(StatusCode.ERROR, reason)
            return outcome


def _server(url: str) -> dict[str, str | int]:
    """The attributes of the host that is called; none if the URL has no host, which the call reports."""
    with suppress(BadValue):
        called = request_url(url)
        return {"server.address": called.raw_host or "", "server.port": called.port or 0}
    return {}
