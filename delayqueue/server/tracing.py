"""OpenTelemetry spans for requests and webhooks, with `traces = yes`. OTEL_* variables set everything else."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final, NamedTuple

from delayqueue import __version__
from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError
from delayqueue.delivery.webhook import Webhooks
from delayqueue.tasks import at_most
from delayqueue.threads import Threads
from delayqueue.web.api import Api
from delayqueue.web.front import Front

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

FLUSH_S: Final = 2.0  # to send the last spans; a collector may be unavailable
EXPORTERS: Final = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}  # by protocol
WAY_OUT: Final = "pip install 'delay-queue-server[otel]'"


class Traced(NamedTuple):
    """Makes the front and opens the webhooks: with spans, or, by default, without."""

    front: Callable[[Api], Front] = Front
    webhooks: Callable[..., AbstractAsyncContextManager[Webhooks]] = Webhooks.open


@asynccontextmanager
async def tracing(config: Config, instance: str) -> AsyncIterator[Traced]:
    """Spans of this `instance` of the server, if the config asks for them. At the end the last ones are sent.

    Raises StartupError if spans are not available.
    """
    if not config.traces:
        yield Traced()
        return
    provider = _provider(instance)
    from delayqueue.delivery.traced_webhooks import TracedWebhooks  # noqa: PLC0415  # they need the packages
    from delayqueue.web.traced_front import TracedFront  # noqa: PLC0415

    tracer = provider.get_tracer("delayqueue", __version__)
    scheme = "https" if config.tls_cert else "http"
    try:
        yield Traced(
            partial(TracedFront, tracer=tracer, scheme=scheme),
            partial(TracedWebhooks.open, tracer=tracer),
        )
    finally:
        async with at_most(FLUSH_S):
            await Threads("traces").run(provider.shutdown)


def check_tracing(config: Config) -> None:
    """Raises StartupError if spans are configured, but not available."""
    if config.traces:
        _provider("").shutdown()


def _provider(instance: str) -> "TracerProvider":
    """The provider as OTEL_* variables say; they may give the service another name."""
    try:
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError:
        raise _refusal(f"needs the packages of OpenTelemetry: {WAY_OUT}") from None
    ours = {
        "service.name": "delay-queue",
        "service.version": __version__,
        "service.instance.id": instance,
    }
    told = OTELResourceDetector().detect().attributes
    try:
        provider = TracerProvider(
            resource=Resource.create({**ours, **told}), shutdown_on_exit=False
        )
        for exporter in _exporters():
            provider.add_span_processor(BatchSpanProcessor(exporter))
    except ValueError as error:
        raise _refusal(f"{str(error).rstrip('.')}; correct the OTEL_* variables") from None
    return provider


def _exporters() -> "list[SpanExporter]":
    names = (os.environ.get("OTEL_TRACES_EXPORTER") or "otlp").split(",")
    return [_exporter(name.strip()) for name in names if name.strip() != "none"]


def _exporter(name: str) -> "SpanExporter":
    if name == "otlp":
        name = EXPORTERS.get(_protocol(), "")
        if not name:
            raise ValueError(f"the protocol {_protocol()}: must be one of {', '.join(EXPORTERS)}")
    for found in entry_points(group="opentelemetry_traces_exporter", name=name):
        exporter: SpanExporter = found.load()()
        return exporter
    raise _refusal(f"no exporter {name} is installed: {WAY_OUT} has otlp_proto_http")


def _protocol() -> str:
    names = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    return next(filter(None, map(os.environ.get, names)), "http/protobuf")


def _refusal(reason: str) -> StartupError:
    return StartupError(f"traces = yes: {reason}", key="traces")
