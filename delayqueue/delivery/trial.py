"""Tries a webhook: one call with a made-up job that is in no queue."""

import asyncio
import secrets
import time
from dataclasses import replace
from typing import Final

from delayqueue.answers.subscribers import Trial
from delayqueue.delivery.outcome import Event
from delayqueue.delivery.webhook import Webhooks
from delayqueue.domain.body import readable
from delayqueue.domain.message import clean
from delayqueue.domain.subscriber import Subscriber

LONGEST_MS: Final = 30_000  # somebody is waiting for the answer


async def try_webhook(webhooks: Webhooks, subscriber: Subscriber, body: str) -> Trial:
    """Call a subscriber's URL as with a real job; the request says that it is a trial."""
    event = Event(
        topic=subscriber.topic,
        id=f"trial-{secrets.token_hex(8)}",
        body=body,
        attempt=1,
        receipt="",
        due_ms=round(time.time() * 1000),
        ttr_ms=0,
        retry_ms=None,
        trial=True,
    )
    loop = asyncio.get_running_loop()
    started_at = loop.time()
    bounded = replace(subscriber, timeout_ms=min(subscriber.timeout_ms, LONGEST_MS))
    outcome = await webhooks.call(bounded, event)
    took_s = round(loop.time() - started_at, 3)
    return Trial(outcome.succeeded, outcome.status, took_s, readable(clean(outcome.message)))
