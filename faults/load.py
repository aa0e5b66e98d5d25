"""Producers and consumers that continue while things break, and record all that they send and receive."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

import aiohttp

from faults.checker import GONE, SETTLED_S, Verdict, judge
from faults.history import INFO, OK, History, read_history
from tests.api_client import OK as CODE_OK
from tests.api_client import UNAVAILABLE, Api, Envelope, Json
from tests.waiting import until

PAUSE_S: Final = 0.02  # after a failure, as a client would
POLL_S: Final = 0.5
MOST_DOUBTED: Final = 200  # pushes to be repeated: a store that refuses at once makes many
QUIET_S: Final = 0.5  # beyond the TTR: nothing more may be delivered in this time
PATIENCE_S: Final = 60.0  # without any end, a job is lost or stuck
MOST_IDS: Final = 1000
STALE: Final = 4


@dataclass(frozen=True)
class Shape:
    """How much to send. `batch` = 1 uses the original's five endpoints as they were."""

    producers: int = 4
    consumers: int = 8
    batch: int = 10
    longest_delay_s: float = 1.0
    ttr_s: int = 1
    pause_s: float = 0.02  # of a producer, after each push
    most: int | None = None  # jobs to push in all; None = until told to stop
    whole_seconds: bool = False  # delays as beanstalkd takes them
    reuses: bool = True  # pushes an id again once what got a 503 must be settled


USUAL: Final = Shape()


class Load:
    """Clients of one or more servers. Half of the consumers send receipts, half do not."""

    def __init__(
        self, history: History, topic: str, apis: Sequence[Api], shape: Shape, seed: int
    ) -> None:
        self.history = history
        self.failures = 0  # requests without a good answer
        self.acknowledged = 0
        self.finished = 0
        self._unfinished: set[str] = set()
        self._ended: set[str] = set()
        self._held: Counter[str] = Counter()  # ids that consumers work on
        self._doubted: dict[str, float] = {}  # ids with a 503: loop time by which it is settled
        self._again: set[str] = set()  # of those, the ones that can then be pushed again
        self.pushed_again = 0
        self.topic = topic
        self._apis = apis
        self._shape = shape
        self._random = random.Random(seed)
        self._numbers = count()
        self._pushing = True
        self._consuming = True
        self._producers = self._start(self._produce, shape.producers)
        self._consumers = self._start(self._consume, shape.consumers)
        self._repeaters = self._start(self._push_again, int(shape.reuses))

    def _start(self, work: object, number: int) -> list[asyncio.Task[None]]:
        return [
            asyncio.create_task(work(self._apis[n % len(self._apis)], n))  # type: ignore[operator]
            for n in range(number)
        ]

    async def until_acknowledged(self, jobs: int, *, within_s: float = 60) -> None:
        """Wait until this many more jobs were pushed."""
        target = self.acknowledged + jobs
        await until(lambda: self.acknowledged >= target, within_s=within_s)

    async def until_finished(self, jobs: int, *, within_s: float = 60) -> None:
        """Wait until this many more jobs were finished."""
        target = self.finished + jobs
        await until(lambda: self.finished >= target, within_s=within_s)

    async def until_pushed_again(self, *, within_s: float = 60) -> None:
        """Wait until one more of the ids with a 503 was pushed again, if any is left."""
        target = self.pushed_again + bool(self._again)
        await until(lambda: self.pushed_again >= target, within_s=within_s)

    async def until_none_fails(self, *, within_s: float) -> None:
        """Wait until some jobs are finished and no request fails meanwhile."""
        failures = -1
        while failures != self.failures:
            failures = self.failures
            await self.until_finished(50, within_s=within_s)

    async def until_all_pushed(self) -> None:
        """Wait until `most` jobs were pushed."""
        await asyncio.gather(*self._producers)

    async def finish(self, *, watch_s: float | None = None) -> Verdict:
        """Stop pushing, drain the queue, watch for surplus deliveries, and judge all that happened.

        It is drained when each job has ended, or none has for PATIENCE_S. Then it watches for `watch_s`; if that
        is None, until the last TTR would have run out.
        """
        self._pushing = False
        await self.until_all_pushed()
        await asyncio.gather(*self._repeaters)
        with suppress(AssertionError):  # the verdict tells what is lost
            while self._unfinished:
                await self.until_finished(1, within_s=PATIENCE_S)
        if self._unfinished:
            self.history.fault(f"not drained: {await self._states()}")
        await asyncio.sleep(self._shape.ttr_s + QUIET_S if watch_s is None else watch_s)
        self._consuming = False
        await asyncio.gather(*self._consumers)
        self.history.flush()
        return judge(read_history(self.history.path))

    async def _states(self) -> list[str]:
        """What the server says about jobs that never ended: a stuck job is not lost."""
        ids = sorted(self._unfinished)[:MOST_IDS]
        answer = await self._apis[0].call("/get", {"ids": ids})
        jobs = answer.data or []
        return sorted({job["state"] if job else "gone" for job in jobs})

    def cancel(self) -> None:
        """End all clients at once."""
        for task in (*self._producers, *self._consumers, *self._repeaters):
            task.cancel()

    async def _produce(self, api: Api, _number: int) -> None:
        while self._pushing:
            jobs = self._next_jobs()
            if not jobs:
                return
            await self._push_jobs(api, jobs)
            await asyncio.sleep(self._shape.pause_s)

    async def _push_jobs(self, api: Api, jobs: list[Json]) -> int:
        """Returns how many were acknowledged."""
        number = self.history.invoke("push", jobs)
        answer = await self._ask(self._push(api, jobs))
        results = _results(answer, [job["id"] for job in jobs])
        self.history.end(number, _outcome(answer), "push", results)
        done = {result["id"] for result in results if result["code"] == CODE_OK}
        self.acknowledged += len(done)
        self._unfinished |= done - self._ended
        if len(self._doubted) < MOST_DOUBTED:
            self._again |= self._doubt(results)
        return len(done)

    def _doubt(self, results: Sequence[Json]) -> set[str]:
        """Note the ids with a 503. Returns them."""
        settled_s = asyncio.get_running_loop().time() + SETTLED_S
        doubted = {result["id"] for result in results if result["code"] == UNAVAILABLE}
        self._doubted |= dict.fromkeys(doubted, settled_s)
        return doubted

    async def _push_again(self, api: Api, _number: int) -> None:
        """What came late would end the new job, or bring it back after its end."""
        while self._pushing or self._again:
            now_s = asyncio.get_running_loop().time()
            settled = [
                job_id
                for job_id in self._again
                if self._doubted[job_id] <= now_s and not self._held[job_id]
            ][: self._shape.batch]
            if settled:
                self._again -= {*settled}
                self._ended -= {*settled}
                for job_id in settled:
                    del self._doubted[job_id]
                jobs = [self._job(job_id) for job_id in settled]
                self.pushed_again += await self._push_jobs(api, jobs)
            await asyncio.sleep(self._shape.pause_s)

    def _next_jobs(self) -> list[Json]:
        """What the history says about the next jobs to push."""
        shape = self._shape
        numbers = [next(self._numbers) for _ in range(shape.batch)]
        return [
            self._job(f"{self.topic}/{n}") for n in numbers if shape.most is None or n < shape.most
        ]

    def _job(self, job_id: str) -> Json:
        shape = self._shape
        delay_s = self._random.uniform(0, shape.longest_delay_s)
        digits = None if shape.whole_seconds else 3
        return {"id": job_id, "delay_s": round(delay_s, digits), "ttr_s": shape.ttr_s}

    async def _push(self, api: Api, jobs: list[Json]) -> Envelope:
        wire = [
            {
                "topic": self.topic,
                "id": job["id"],
                "delay": job["delay_s"],
                "ttr": job["ttr_s"],
                "body": f"body of {job['id']}",
            }
            for job in jobs
        ]
        return await (api.push_all(wire) if self._shape.batch > 1 else api.push(**wire[0]))

    async def _consume(self, api: Api, number: int) -> None:
        proves = number % 2 == 0
        while self._consuming:
            jobs = await self._pop(api)
            if jobs:
                ids = [job["id"] for job in jobs]
                self._held.update(ids)
                await self._finish_jobs(api, jobs, proves=proves)
                self._held.subtract(ids)

    async def _pop(self, api: Api) -> list[Json]:
        options = {"count": self._shape.batch} if self._shape.batch > 1 else {}
        number = self.history.invoke("pop", ())
        answer = await self._ask(api.pop(self.topic, timeout=POLL_S, **options))
        data = answer.data if answer else None
        jobs: list[Json] = data if isinstance(data, list) else [data] if data else []
        for job in jobs:
            assert job["body"] == f"body of {job['id']}", job
        told: list[Json] = [
            {key: job[key] for key in ("id", "attempt", "due") if key in job} for job in jobs
        ]
        self.history.end(number, _outcome(answer), "pop", told)
        return jobs

    async def _finish_jobs(self, api: Api, jobs: list[Json], *, proves: bool) -> None:
        """One by one with receipts, or all at once."""
        if proves or self._shape.batch == 1:
            for job in jobs:
                proof = {"receipt": job["receipt"]} if proves and "receipt" in job else {}
                await self._end(api, [job["id"]], {"id": job["id"]} | proof)
        else:
            ids = [job["id"] for job in jobs]
            await self._end(api, ids, {"ids": ids})

    async def _end(self, api: Api, ids: list[str], request: Json) -> None:
        """Repeat until there is an answer for each job: a first finish without an answer may have ended it."""
        while ids:
            number = self.history.invoke("finish", [{"id": job_id} for job_id in ids])
            answer = await self._ask(api.call("/finish", request), (GONE, STALE))
            results = _results(answer, ids)
            self.history.end(number, _outcome(answer), "finish", results)
            done = {result["id"] for result in results if result["code"] in (CODE_OK, GONE)}
            self.finished += len(done)
            self._ended |= done
            self._unfinished -= done
            self._doubt(results)
            self._again |= done & self._doubted.keys()
            # of many some can be without an answer: their bucket was away
            if answer is not None and answer.code != UNAVAILABLE:
                ids = [each["id"] for each in results if each["code"] == UNAVAILABLE]
                request = {"ids": ids}

    async def _ask(
        self, request: Awaitable[Envelope], refusals: Sequence[int] = ()
    ) -> Envelope | None:
        """The answer: a success, a 503 or one of these refusals; None if there is none. After a failure, a pause."""
        try:
            answer = await request
        except (aiohttp.ClientError, TimeoutError, OSError):
            answer = None
        if answer is None or answer.code == UNAVAILABLE:
            self.failures += 1
            await asyncio.sleep(PAUSE_S)
            return answer
        assert answer.code in (CODE_OK, *refusals), answer
        return answer


@asynccontextmanager
async def running(
    path: Path, topic: str, *apis: Api, shape: Shape = USUAL, seed: int = 0
) -> AsyncIterator[Load]:
    """A load on these servers, each client on one of them; its history goes to `path`."""
    with History(path) as history:
        load = Load(history, topic, apis, shape, seed)
        try:
            yield load
        finally:
            load.cancel()


def _outcome(answer: Envelope | None) -> str:
    """A 503 is not a refusal: the request may have been carried out, and its answer lost."""
    return INFO if answer is None or answer.code == UNAVAILABLE else OK


def _results(answer: Envelope | None, ids: list[str]) -> list[Json]:
    """Id and code of each job that was named."""
    if answer is None:
        return []
    if isinstance(answer.data, list):
        return [{"id": result["id"], "code": result["code"]} for result in answer.data]
    if answer.code == UNAVAILABLE:
        return [{"id": job_id, "code": UNAVAILABLE} for job_id in ids]
    return [{"id": ids[0], "code": answer.code}]
