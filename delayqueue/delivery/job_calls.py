"""Makes the calls of jobs: each job goes to a URL of its own."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from random import randint
from time import time
from typing import Final

from delayqueue.delivery.call_guard import CallGuard
from delayqueue.delivery.consumer import Consumer
from delayqueue.delivery.delivery import Delivery
from delayqueue.delivery.failure_log import FailureLog
from delayqueue.delivery.host_places import HostPlaces
from delayqueue.delivery.outcome import Event, WebhookOutcome
from delayqueue.delivery.urls import host_and_port_of
from delayqueue.delivery.webhook import Webhooks
from delayqueue.domain.access import EVERYWHERE
from delayqueue.domain.call import NAME, Call
from delayqueue.domain.call_counters import CallCounters, HostCounters
from delayqueue.domain.job import CALLS, Reserved
from delayqueue.domain.subscriber import Subscriber
from delayqueue.domain.text import clean
from delayqueue.engine.queue import DelayQueue
from delayqueue.errors import NoSuchJob, StaleReceipt, Unavailable
from delayqueue.metrics import CALL_LATENESS, SUBSCRIBER_CALLS
from delayqueue.tasks import TaskGroup

ROOM: Final = 1000  # jobs in hand
SHARE: Final = 10  # a host has at most this part of the room that is left
ROOM_BYTES: Final = 64 * 1024 * 1024  # of their bodies, about
CROWDED_MS: Final = (1000, 3000)  # for how long a job is put off if the bodies in hand are more


class JobCalls:
    """Takes the jobs with a call, of all topics, as they become ready. `run` is a background loop of the server.

    A job has one subscriber, which is made of its call. `secrets` sign the requests of topics, that of None those of
    all other topics; those of a topic without a secret are not signed.
    """

    def __init__(
        self,
        queue: DelayQueue,
        webhooks: Webhooks,
        guard: CallGuard,
        *,
        secrets: Mapping[str | None, str],
        per_host: int,
    ) -> None:
        self._queue = queue
        self._jobs = queue.within(EVERYWHERE)
        self._webhooks = webhooks
        self._guard = guard
        self._secrets = secrets
        self._per_host = per_host
        self._counters = queue.metrics.calls = CallCounters(per_host)
        self._lateness = queue.metrics.histogram(CALL_LATENESS)
        self._hosts: dict[str, HostPlaces] = {}  # with their ports, that jobs in hand are for
        self._placed = 0  # jobs that call, or wait for their hosts
        self._bytes = 0  # of their bodies
        self._failures = FailureLog()
        self._stopping = asyncio.Event()
        self._tasks = TaskGroup()
        self._consumer = Consumer(
            self._jobs,
            (CALLS,),
            name="calls of jobs",
            work=self._work,
            spawn=self._tasks.create_task,
        )

    async def run(self) -> None:
        """Make calls until cancelled; then jobs in hand are given back. If a task of it dies, all end."""
        async with self._tasks:
            self._consumer.reserve(ROOM)
            await self._tasks.failed()

    def stop(self) -> None:
        """Reserve nothing more."""
        self._stopping.set()
        self._consumer.reserve(0)

    @property
    def in_hand(self) -> set[asyncio.Task[None]]:
        """The work on its jobs."""
        return self._consumer.in_hand

    async def _work(self, job: Reserved) -> None:
        if job.call is None:
            with suppress(StaleReceipt, NoSuchJob, Unavailable):  # Unavailable: again after its TTR
                await self._jobs.bury(job.id, job.nonce, "its call cannot be read")
            return
        name = host_and_port_of(job.call.url)
        counters = self._counters.of(name)
        host = self._hosts.setdefault(name, HostPlaces(self._per_host))
        try:
            if host.is_full or host.users >= self._share:
                delay_ms = host.next_delay_ms(self._placed / host.users)
                counters.put_off(job.late_from_ms / 1000, delay_ms / 1000)
                self._put_off(job, delay_ms)
            elif self._bytes > ROOM_BYTES:
                self._put_off(job, randint(*CROWDED_MS))  # noqa: S311  # no secret
            else:
                self._placed += 1
                self._bytes += len(job.body)
                try:
                    await self._delivery(job, job.call, host, counters).run()
                finally:
                    self._placed -= 1
                    self._bytes -= len(job.body)
        finally:
            if not host.users and self._hosts.get(name) is host:
                del self._hosts[name]

    @property
    def _share(self) -> int:
        """How many jobs of one host may call or wait: fewer as the room fills, so that many dead hosts leave some."""
        return max(1, (ROOM - self._placed) // SHARE)

    def _put_off(self, job: Reserved, delay_ms: int) -> None:
        """Give back a job for which there is no place; the attempt does not count."""
        self._queue.metrics.count(SUBSCRIBER_CALLS, NAME, "put_off")
        self._jobs.polls.requeue([job], delay_ms=delay_ms)

    def _delivery(
        self, job: Reserved, call: Call, host: HostPlaces, counters: HostCounters
    ) -> Delivery:
        subscriber = call.subscriber(
            job.topic, self._secrets.get(job.topic, self._secrets.get(None, ""))
        )
        must_wait = not host.is_free

        async def refresh(_: str | None) -> None:
            if must_wait:  # somebody may have ended the job meanwhile
                await self._jobs.touch(job.id, job.nonce, None)

        return Delivery(
            self._queue,
            self._jobs,
            partial(self._call, counters),
            job,
            subscribers=lambda: (subscriber,),
            refresh=refresh,
            stopping=self._stopping,
            place=_place(host, counters, job.late_from_ms / 1000),
            failures=self._failures,
        )

    async def _call(
        self, counters: HostCounters, subscriber: Subscriber, event: Event
    ) -> WebhookOutcome:
        loop = asyncio.get_running_loop()
        started_at = loop.time()
        if event.attempt == 1:
            self._lateness.observe(max(0.0, time() - event.late_from_ms / 1000))
        with counters.calling():
            outcome = await self._outcome(subscriber, event)
        error = None if outcome.succeeded else clean(outcome.message)
        counters.ended(loop.time() - started_at, error)
        return outcome

    async def _outcome(self, subscriber: Subscriber, event: Event) -> WebhookOutcome:
        """Call the URL, unless the settings have forbidden it since the push."""
        try:
            self._guard.check_url(subscriber.url)
        except ValueError as error:
            return WebhookOutcome(False, str(error))
        outcome = await self._webhooks.call(subscriber, event)
        return outcome._replace(gone=False)  # nobody is unsubscribed


@asynccontextmanager
async def _place(host: HostPlaces, counters: HostCounters, due_s: float) -> AsyncIterator[None]:
    """A place at the host, for the block; the job, which was due then, counts as waiting until it has one."""
    with ExitStack() as waits:
        waits.enter_context(counters.waiting(due_s))
        async with host.place():
            waits.close()
            yield
