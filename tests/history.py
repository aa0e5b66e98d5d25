"""A load of producers and consumers that goes on while things break, and the judgement of what they saw.

As in Jepsen's total-queue checker: what was acknowledged must be delivered and finished, what was delivered must
have been pushed. Besides: nothing is delivered before it is due, nor by a pop that began after its finish was
acknowledged.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Final

import aiohttp

from tests.api_client import OK
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from tests.api_client import Api, Envelope, Json

BATCH: Final = 20
TTR_S: Final = 1
PAUSE_S: Final = 0.02
MOST_IDS: Final = 1000
CLOCK_STEP_S: Final = 0.002


@dataclass
class History:
    """What happened; times are those of the monotonic clock, in seconds."""

    attempted: set[str] = field(default_factory=set)
    acknowledged: set[str] = field(default_factory=set)
    delivered: set[str] = field(default_factory=set)
    finished_s: dict[str, float] = field(default_factory=dict)
    broken_rules: list[str] = field(default_factory=list)
    failures: int = 0  # requests without a good answer: their outcome is unknown
    left_in: Counter[str] = field(default_factory=Counter)  # states of the lost jobs at the end

    @property
    def lost(self) -> set[str]:
        """Acknowledged and never finished."""
        return self.acknowledged - self.finished_s.keys()

    @property
    def unexpected(self) -> set[str]:
        """Delivered and never pushed."""
        return self.delivered - self.attempted

    def deliver(self, job: Json, asked_s: float) -> None:
        job_id = job["id"]
        self.delivered.add(job_id)
        if time.time() < job["due"] - CLOCK_STEP_S:
            self.broken_rules.append(f"{job_id} came before it was due")
        if job["body"] != f"body of {job_id}":
            self.broken_rules.append(f"{job_id} came with another body: {job['body']}")
        finished_s = self.finished_s.get(job_id)
        if finished_s is not None and finished_s < asked_s:
            self.broken_rules.append(f"{job_id} came after its finish")

    def check(self) -> None:
        """Raises AssertionError where a promise was broken."""
        never_came = len(self.lost - self.delivered)
        assert not self.lost, (
            f"{len(self.lost)} of {len(self.acknowledged)} lost, {never_came} of them never came; "
            f"the server says: {dict(self.left_in)}; e.g. {sorted(self.lost)[:5]}"
        )
        assert not self.unexpected
        assert not self.broken_rules


class Load:
    """Clients of one or more servers that push, pop and finish until told to stop."""

    def __init__(self, topic: str, *apis: Api, producers: int = 2, consumers: int = 4) -> None:
        self.history = History()
        self._topic = topic
        self._apis = apis
        self._numbers = count()
        self._pushing = True
        self._consuming = True
        self._tasks = [
            *(asyncio.create_task(self._produce(apis[n % len(apis)])) for n in range(producers)),
            *(asyncio.create_task(self._consume(apis[n % len(apis)])) for n in range(consumers)),
        ]

    async def until_acknowledged(self, jobs: int) -> None:
        """Wait until that many more jobs were pushed."""
        target = len(self.history.acknowledged) + jobs
        await until(lambda: len(self.history.acknowledged) >= target, within_s=30)

    async def finish(self) -> History:
        """Stop pushing, drain the queue as far as it gives something, and end."""
        self._pushing = False
        try:
            await until(lambda: not self.history.lost, within_s=20)
        except AssertionError:
            self.history.broken_rules.append("the queue was not drained in time")
            self.history.left_in = await self._states(sorted(self.history.lost)[:MOST_IDS])
        self._consuming = False
        await asyncio.gather(*self._tasks)
        return self.history

    async def _states(self, ids: list[str]) -> Counter[str]:
        """How many of these jobs the server has in which state: a job that is stuck is not gone."""
        answer = await self._apis[0].call("/get", {"ids": ids})
        return Counter(job["state"] if job else "gone" for job in answer.data or ())

    async def _produce(self, api: Api) -> None:
        while self._pushing:
            ids = [f"{self._topic}/{next(self._numbers)}" for _ in range(BATCH)]
            self.history.attempted.update(ids)
            answer = await self._ask(api.push_all([self._job(job_id) for job_id in ids]))
            if answer:
                self.history.acknowledged.update(r["id"] for r in answer.data if r["code"] == OK)

    async def _consume(self, api: Api) -> None:
        while self._consuming:
            asked_s = time.monotonic()
            answer = await self._ask(api.pop(self._topic, count=BATCH, timeout=0.5))
            if not answer or not answer.data:
                continue
            for job in answer.data:
                self.history.deliver(job, asked_s)
            await self._finish_jobs(api, [job["id"] for job in answer.data])

    async def _finish_jobs(self, api: Api, ids: list[str]) -> None:
        """Ask until it is acknowledged: a first finish without an answer may have removed the jobs."""
        while not (answer := await self._ask(api.call("/finish", {"ids": ids}))):
            pass
        finished_s = time.monotonic()
        for result in answer.data:
            if result["code"] == OK:
                self.history.finished_s.setdefault(result["id"], finished_s)

    def _job(self, job_id: str) -> Json:
        delay_s = 0.1 * (int(job_id.rpartition("/")[2]) % 4)
        body = f"body of {job_id}"
        return {"topic": self._topic, "id": job_id, "delay": delay_s, "ttr": TTR_S, "body": body}

    async def _ask(self, request: Awaitable[Envelope]) -> Envelope | None:
        """The answer where it is a success. After a failure it waits a moment, as a client would."""
        try:
            answer = await request
        except (aiohttp.ClientError, TimeoutError):
            answer = None
        if answer is not None and answer.code == OK:
            return answer
        self.history.failures += 1
        await asyncio.sleep(PAUSE_S)
        return None
