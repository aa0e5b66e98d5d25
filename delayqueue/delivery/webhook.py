"""Webhooks, signed as the Standard Webhooks specification says."""

import asyncio
import hmac
import json
import re
import secrets
import time
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, Self
from urllib.parse import quote

import aiohttp
from aiohttp.abc import AbstractResolver
from multidict import CIMultiDict

from delayqueue import __version__
from delayqueue.answers.subscribers import Trial
from delayqueue.delivery.addresses import AddressGuard, Resolver
from delayqueue.delivery.connector import MeteredConnector, MeteredRequest, once_more
from delayqueue.delivery.outcome import RESULT_BYTES, TOO_LONG, Event, WebhookOutcome
from delayqueue.delivery.side_loop import SideLoop
from delayqueue.delivery.urls import request_url
from delayqueue.domain.subscriber import Method, Payload, Subscriber, signing_key
from delayqueue.domain.text import clean, message_of, readable, without
from delayqueue.store.record import text
from delayqueue.tasks import at_most

CONNECT_S: Final = 10.0  # for DNS, connecting and TLS
LATE_S: Final = 2.0  # after the timeout of a call, which its own loop keeps to within a second
CLOSE_S: Final = 1.0  # for connections to end
LONGEST_RETRY_AFTER_S: Final = 86_400
LONGEST_TRIAL_MS: Final = 30_000  # somebody is waiting for the answer
# most ids and topics; quote() takes a dozen calls
UNCHANGED: Final = re.compile(r"[A-Za-z0-9_~-]*")
# ASCII that a header can hold, except % and the full stop
VISIBLE: Final = "!\"#$&'()*+,/:;<=>?@[\\]^`{|}"


class Webhooks:
    """Calls subscribers' URLs, outside the server's loop: a receiver's TLS and HTTP can take long to read."""

    def __init__(self, side_loop: SideLoop, session: aiohttp.ClientSession) -> None:
        self._side_loop = side_loop
        self._session = session

    @classmethod
    @asynccontextmanager
    async def open(
        cls, guard: AddressGuard, resolver: AbstractResolver | None = None, **parts: Any
    ) -> AsyncIterator[Self]:
        """Webhooks that may reach what the guard permits; `parts` are for a subclass."""
        async with aclosing(SideLoop("loop of webhooks")) as side_loop:
            session = await side_loop.run(_session(guard, resolver or Resolver()))
            try:
                yield cls(side_loop, session, **parts)
            finally:
                await side_loop.run(_close(session))

    async def call(self, subscriber: Subscriber, job: Event) -> WebhookOutcome:
        """Send the job's body, or the event: a 2xx is a success if the answer is as expected."""
        timeout_s = subscriber.timeout_ms / 1000
        try:
            async with asyncio.timeout(timeout_s + LATE_S):
                return await self._side_loop.run(self._call(subscriber, job))
        except TimeoutError:
            return WebhookOutcome(False, f"timeout: {timeout_s:g} s")

    async def trial(self, subscriber: Subscriber, body: str) -> Trial:
        """Call the subscriber with a made-up job that is in no queue; the request says that it is a trial."""
        event = Event(
            topic=subscriber.topic,
            id=f"trial-{secrets.token_hex(8)}",
            body=body.encode(),
            attempt=1,
            nonce="",
            due_ms=round(time.time() * 1000),
            ttr_ms=0,
            retry_ms=None,
            trial=True,
        )
        started_at = time.monotonic()
        bounded = replace(subscriber, timeout_ms=min(subscriber.timeout_ms, LONGEST_TRIAL_MS))
        outcome = await self.call(bounded, event)
        took_s = round(time.monotonic() - started_at, 3)
        return Trial(outcome.succeeded, outcome.status, took_s, readable(clean(outcome.message)))

    async def _call(self, subscriber: Subscriber, job: Event) -> WebhookOutcome:
        outcome = await self._outcome(subscriber, job)
        values = (value for _, value in subscriber.headers)
        return outcome._replace(message=without(values, outcome.message))

    async def _outcome(self, subscriber: Subscriber, job: Event) -> WebhookOutcome:
        body = event_bytes(job) if subscriber.payload is Payload.EVENT else job.body
        try:
            async with self._session.request(
                subscriber.method.value,
                request_url(subscriber.url),
                data=body if _has_body(subscriber, body) else None,
                headers=_headers(subscriber, job, body),
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(
                    total=subscriber.timeout_ms / 1000, connect=CONNECT_S
                ),
            ) as response:
                return _outcome(subscriber, response, *await _beginning(response))
        except TimeoutError as error:
            return WebhookOutcome(
                False, message_of(error) or f"timeout: {subscriber.timeout_ms / 1000:g} s"
            )
        except aiohttp.ClientResponseError as error:
            why = message_of(error.message).partition(":")[0]  # a part of the answer may follow
            return WebhookOutcome(False, f"no valid answer: {why}")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return WebhookOutcome(False, message_of(error) or type(error).__name__)


async def _session(guard: AddressGuard, resolver: AbstractResolver) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=MeteredConnector(guard, resolver),
        request_class=MeteredRequest,
        middlewares=(once_more,),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,  # only the start of an answer is needed
        headers={"User-Agent": f"delay-queue/{__version__}", "Accept-Encoding": "identity"},
    )


async def _close(session: aiohttp.ClientSession) -> None:
    async with at_most(CLOSE_S):
        await session.close()


def sign(secret: str, message_id: str, timestamp: str, body: bytes) -> str:
    """The signature of a message."""
    mac = _mac(secret).copy()
    mac.update(f"{message_id}.{timestamp}.".encode() + body)
    return "v1," + b64encode(mac.digest()).decode()


@lru_cache(maxsize=64)
def _mac(secret: str) -> hmac.HMAC:
    """A MAC that begins with the secret. Unlike hmac.digest(), it signs a short text without releasing the GIL."""
    return hmac.new(signing_key(secret), digestmod="sha256")


def header_text(text: str) -> str:
    """Text for a header and a signature: all but visible ASCII is percent-encoded, and full stops, too."""
    if UNCHANGED.fullmatch(text):
        return text
    return quote(text, safe=VISIBLE).replace(".", "%2E")


def _headers(subscriber: Subscriber, job: Event, body: bytes) -> CIMultiDict[str]:
    message_id, timestamp = header_text(job.id), str(int(time.time()))
    headers = CIMultiDict[str]()
    if _has_body(subscriber, body):
        headers["Content-Type"] = _content_type(body)
    headers.update(subscriber.headers)
    headers["webhook-id"] = message_id
    headers["webhook-timestamp"] = timestamp
    headers["delay-queue-topic"] = header_text(job.topic)
    headers["delay-queue-attempt"] = str(job.attempt)
    if trace := job.texts.get("traceparent"):
        headers["traceparent"] = trace
    if job.trial:
        headers["delay-queue-trial"] = "1"
    if subscriber.secret:
        headers["webhook-signature"] = sign(subscriber.secret, message_id, timestamp, body)
    return headers


def _has_body(subscriber: Subscriber, body: bytes) -> bool:
    """Whether a body is sent, though it may be empty: a GET usually has none."""
    return bool(body) or subscriber.method is not Method.GET


def event_bytes(job: Event) -> bytes:
    """The job and the results of earlier subscribers, as JSON."""
    event = {
        "topic": job.topic,
        "id": job.id,
        "body": text(job.body),
        "attempt": job.attempt,
        "due": job.due_ms / 1000,
        "results": {name: result._asdict() for name, result in job.results.items()},
        **({"trial": True} if job.trial else {}),
    }
    written = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    return written.encode("utf-8", "surrogateescape")


def _content_type(body: bytes) -> str:
    try:
        json.loads(body.decode())
    except UnicodeDecodeError:
        return "application/octet-stream"
    except (ValueError, RecursionError):
        return "text/plain; charset=utf-8"
    return "application/json"


async def _beginning(response: aiohttp.ClientResponse) -> tuple[str, str]:
    """The start of an answer, and what it lacks; the status counts even if the rest does not arrive."""
    read, lacks = bytearray(), ""
    try:
        async for chunk in response.content.iter_any():
            read += chunk
            if len(read) > RESULT_BYTES:
                lacks = TOO_LONG
                break
    except (aiohttp.ClientError, TimeoutError):
        lacks = "broke off"
    return read[:RESULT_BYTES].decode("utf-8", "replace").strip(), lacks


def _outcome(
    subscriber: Subscriber, response: aiohttp.ClientResponse, said: str, lacks: str
) -> WebhookOutcome:
    message = f"{response.status} {said}".strip()
    is_2xx = 200 <= response.status < 300
    if is_2xx and not subscriber.is_expected(said):
        message = f"not {subscriber.expect}: {message}"
        is_2xx = False
    return WebhookOutcome(
        succeeded=is_2xx,
        message=message,
        retry_after_ms=_retry_after_ms(response.headers.get("Retry-After", "")),
        gone=response.status == HTTPStatus.GONE,
        status=response.status,
        lacks=lacks,
    )


def _retry_after_ms(value: str) -> int:
    """Seconds, or a date as in HTTP; 0 if it is neither."""
    if value.isascii() and value.isdigit():
        wait_s = float(value)
    else:
        try:
            date = parsedate_to_datetime(value)
            if date.tzinfo is None:  # as in asctime's form: every date of HTTP is UTC
                date = date.replace(tzinfo=UTC)
            wait_s = date.timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return 0
    return round(1000 * min(max(wait_s, 0.0), LONGEST_RETRY_AFTER_S))
