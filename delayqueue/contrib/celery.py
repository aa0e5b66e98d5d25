"""Celery's tasks that are due later than a minute: they wait in the delay queue and reach the broker when they are due.

A Celery worker takes a task with an `eta` at once and holds it, unacknowledged, until it is due. Redis and SQS deliver
it to others meanwhile, again and again, once the visibility timeout is over.
"""

from __future__ import annotations

import time
from base64 import b64decode, b64encode
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from celery.app.amqp import AMQP, task_message
from celery.app.control import Control
from celery.utils.time import maybe_iso8601, maybe_make_aware
from kombu import Exchange, Queue
from kombu.exceptions import OperationalError
from kombu.serialization import dumps
from kombu.utils.encoding import bytes_to_str

from delayqueue.client import TooMany, TopicFull, TransportError, Unavailable
from delayqueue.client.times import seconds
from delayqueue.domain.job import LONG_DELAY_S, MAX_BATCH
from delayqueue.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from celery import Celery

    from delayqueue.client.times import Seconds

TOPIC: Final = "celery"
BEYOND: Final = "1m"  # what a worker may well hold: every broker waits longer for it
TTR_S: Final = 10  # this much later comes what a worker had in hand that died
RETRY: Final = ("1s", "10s", "1m")  # while the broker is away, however long
BINARY: Final = "binary"  # what kombu says of a body of bytes


def install(
    app: Celery,
    url: str | None = None,
    *,
    token: str | None = None,
    topic: str = TOPIC,
    beyond: Seconds = BEYOND,
) -> Worker:
    """Keep what `app` sends with an `eta` or `countdown` later than `beyond` as jobs of `topic`, until it is due.

    Returns the worker that then sends them to the broker: run it with `delay-queue worker`. Call this where the app is
    made, so that all that send, revoke or retry tasks have it. `url` and `token` default to DELAYQUEUE_URL and
    DELAYQUEUE_TOKEN. Each app on a server needs a `topic` of its own.
    """
    relay = Worker(url, token=token)

    @relay.task(topic, ttr=TTR_S, retry=RETRY, max_attempts=None, bury_on=(LookupError, ValueError))
    def send(  # the parts of a message
        task: str,
        payload: str,
        properties: dict[str, Any],
        headers: dict[str, Any],
        event: dict[str, Any],
        options: dict[str, Any],
    ) -> None:
        is_binary = properties["content_encoding"] == BINARY
        body = b64decode(payload) if is_binary else payload
        message = task_message(headers, properties, body, event)
        with app.producer_or_acquire() as producer:
            app.amqp.send_task_message(producer, task, message, **options)

    app.amqp_cls = partial(_Sender, push_later=send.push, beyond_s=seconds(beyond))
    app.control_cls = partial(_Control, relay=relay, topic=topic)
    for made in ("amqp", "control"):  # of an app that has been used
        vars(app).pop(made, None)
    return relay


class _Sender(AMQP):  # type: ignore[misc]  # Celery has no types
    """Sends what is due soon to the broker, as Celery does, and pushes the rest."""

    def __init__(self, app: Celery, push_later: Callable[..., str], beyond_s: float) -> None:
        super().__init__(app)
        self._push_later = push_later
        self._beyond_s = beyond_s

    @property
    def send_task_message(self) -> Callable[..., Any]:
        """What Celery sends every message with."""
        return partial(self._send, super().send_task_message)

    def _send(
        self,
        send_now: Callable[..., Any],
        producer: Any,
        name: str,
        message: task_message,
        **options: Any,
    ) -> Any:
        delay_s = _delay_s(message.headers, options)
        if delay_s <= self._beyond_s:
            return send_now(producer, name, message, **options)
        return self._push(name, message, options, delay_s)

    def _push(
        self, name: str, message: task_message, options: dict[str, Any], delay_s: float
    ) -> None:
        serializer = options.pop("serializer", None) or self.app.conf.task_serializer
        content_type, encoding, body = dumps(message.body, serializer=serializer)
        payload = b64encode(body).decode() if encoding == BINARY else bytes_to_str(body)
        properties = {"content_type": content_type, "content_encoding": encoding}
        # the worker would hold it by the first, and what the second counts begins when it is sent
        headers = message.headers | {"eta": None}
        options.pop("expiration", None)
        with _as_a_broker():
            self._push_later(
                name,
                payload,
                message.properties | properties,
                headers,
                message.sent_event or {},
                {name: _named(value) for name, value in options.items() if value is not None},
                id=headers["id"],
                # a delay of more than a year is taken for a mistake
                **{"delay": delay_s} if delay_s <= LONG_DELAY_S else {"due": time.time() + delay_s},
            )


class _Control(Control):  # type: ignore[misc]  # Celery has no types
    """Revokes what still waits, too."""

    def __init__(self, app: Celery, relay: Worker, topic: str) -> None:
        super().__init__(app)
        self._relay = relay
        self._topic = topic

    def revoke(self, task_id: str | list[str], *args: Any, **kwargs: Any) -> Any:
        """Delete the jobs of these tasks, then tell the workers, which may have some of them."""
        ids = [task_id] if isinstance(task_id, str) else list(task_id)
        with _as_a_broker():
            for first in range(0, len(ids), MAX_BATCH):
                self._delete(ids[first : first + MAX_BATCH])
        return super().revoke(task_id, *args, **kwargs)

    def _delete(self, ids: Sequence[str]) -> None:
        """Delete what waits of these tasks. The states of others are the workers' to tell."""
        found = self._relay.client.get_many(ids)
        waiting = [
            job.id for job in found if job and job.topic == self._topic and job.ended is None
        ]
        for outcome in self._relay.client.delete_many(waiting) if waiting else ():
            if outcome.code == 0:  # no worker will say so
                self.app.backend.mark_as_revoked(outcome.id, "revoked")


@contextmanager
def _as_a_broker() -> Iterator[None]:
    """Raises OperationalError, as for a broker, if the delay queue cannot be reached."""
    try:
        yield
    except (TransportError, Unavailable, TooMany, TopicFull) as error:
        raise OperationalError(str(error)) from error


def _delay_s(headers: dict[str, Any], options: dict[str, Any]) -> float:
    """How long a task has to wait; 0 if the broker delays it by itself."""
    eta, exchange = headers.get("eta"), options.get("exchange")
    if eta is None or "celery_delayed_" in getattr(exchange, "name", ""):  # RabbitMQ, quorum queues
        return 0
    due = maybe_make_aware(maybe_iso8601(eta))  # of this clock, which a countdown was added to
    return float((due - datetime.now(UTC)).total_seconds())


def _named(option: Any) -> Any:
    """A queue or an exchange by its name, as the app of the worker defines it."""
    return option.name if isinstance(option, Queue | Exchange) else option
