"""Row 45: the jobs of groups come one at a time and in their order, while all that handles them is killed."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import aiohttp

from delayqueue.tasks import batched
from faults.bed import (
    DATABASE,
    Bed,
    Figures,
    assert_fsck_finds_nothing,
    assert_whole,
    labelled,
    restart,
)
from faults.checker import GONE, judge
from faults.group_checker import ENDED, judge_groups
from faults.history import INFO, OK, History, read_history
from faults.load import MOST_IDS, PATIENCE_S, PAUSE_S, POLL_S, STALE
from faults.scenarios.failovers import replace_master
from tests.api_client import OK as CODE_OK
from tests.api_client import UNAVAILABLE, Api, Envelope, Json, open_api
from tests.clusters import WatchedStore
from tests.processes import QueueServer, StoreServer
from tests.waiting import until

WORKERS: Final = 8
SERVERS: Final = 2
PRODUCERS: Final = 4
BATCH: Final = 10  # jobs of a push, all of one customer
MOST_TAKEN: Final = 8  # jobs of a pop
TTR_S: Final = 2
RETRY: Final = {"delays": [0.2] * 60}
KEPT_S: Final = 3600
# of every other customer; the others' jobs are due when they are pushed
LONGEST_DELAY_S: Final = 0.5
FAILS: Final = 0.05  # of all attempts
HANGS: Final = 0.01  # until the TTR is over
WORKER_LIVES_S: Final = (0.1, 0.8)  # until the next one is killed
KILLED, FAILED = "workers killed", "attempts failed"
UNANSWERED, LATE = "unanswered", "late finishes"
FAULTS: Final = (KILLED, FAILED, UNANSWERED)  # each must have happened
TOLD: Final = ("id", "attempt", "due")  # in the history, of a job that a poll brought
LOOK_S: Final = 1.0


async def killed_in_order(bed: Bed, *, customers: int, jobs: int, kills: int) -> Figures:
    """On one store, which is killed too; then on one whose master is killed, and replaced by its replica."""
    store = bed.store(fsync="always")
    servers = [await bed.server(store, durability="fsync") for _ in range(SERVERS)]
    work = Work(bed, servers, customers, jobs)
    async with work.going_on():
        victims: list[QueueServer | StoreServer] = [*servers, store]
        for kill in range(kills):
            await work.until_ended((kill + 1) / (kills + 2))
            await _kill(work, victims[kill % len(victims)])
    figures = work.judged()
    await assert_whole(store)
    replica = await _master_killed(bed, customers, jobs, kills)
    return labelled({"fsync": figures, "replica": replica})


async def _master_killed(bed: Bed, customers: int, jobs: int, kills: int) -> Figures:
    store = WatchedStore(bed.processes)
    # else a master that comes back hands out jobs beside the new one: docs/durability.md, "Which calls wait"
    settings = store.settings(DATABASE) | {"durability": "replica", "redis.replicate": "all"}
    servers = [await bed.server(None, **settings) for _ in range(SERVERS)]
    work = Work(bed, servers, customers, jobs)
    async with work.going_on():
        for kill in range(kills):
            await work.until_ended((kill + 1) / (kills + 2))
            if kill == kills // 2:
                work.history.fault("kill the master")
                await replace_master(bed, list(store.nodes))
            else:
                await _kill(work, servers[kill % SERVERS])
    await asyncio.to_thread(assert_fsck_finds_nothing, settings)
    store.close()
    return work.judged()


async def _kill(work: "Work", victim: QueueServer | StoreServer) -> None:
    work.history.fault(f"kill {victim.name}")
    victim.kill()
    await work.bed.pause(0, 0.5)
    await restart(victim)


class Work:
    """Customers whose jobs are pushed, each in its order, and workers that are killed all the time."""

    def __init__(self, bed: Bed, servers: Sequence[QueueServer], customers: int, jobs: int) -> None:
        self.bed = bed
        self.topic = f"{bed.topic}-{servers[0].port}"
        self.history = History(bed.home / f"history-{servers[0].port}.jsonl")
        self._servers = servers
        self._customers = customers
        self._jobs = jobs
        self._ended: set[str] = set()
        self._counts = dict.fromkeys((*FAULTS, LATE), 0)
        self._workers: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        """Push and work beside the block, and after it until all has ended, or nothing more does."""
        async with open_api(self._servers[0].url) as api, asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            await self._surely(api, "/limit", {"topic": self.topic, "group_order": True})
            pushing = [tasks.create_task(self._produce(api, n)) for n in range(PRODUCERS)]
            self._workers = [tasks.create_task(self._work(n)) for n in range(WORKERS)]
            killing = tasks.create_task(self._kill_workers())
            yield
            await asyncio.gather(*pushing)
            killing.cancel()
            await self._drain(api)
            for worker in self._workers:
                worker.cancel()

    async def until_ended(self, share: float) -> None:
        """Wait until that share of all jobs has ended."""
        wanted = share * self._customers * self._jobs
        while len(self._ended) < wanted:
            ended = len(self._ended)
            await until(partial(self._have_ended, ended + 1), within_s=PATIENCE_S)

    def _have_ended(self, count: int) -> bool:
        return len(self._ended) >= count

    def judged(self) -> Figures:
        """The figures. Raises AssertionError if a promise was broken, or a fault never came."""
        self.history.flush()
        groups = judge_groups(read_history(self.history.path))
        groups.check()
        verdict = judge(read_history(self.history.path))
        verdict.check()
        assert all(self._counts[fault] for fault in FAULTS), self._counts
        return {"jobs": verdict.acknowledged, "deliveries": groups.deliveries} | self._counts

    async def _produce(self, api: Api, producer: int) -> None:
        """Push the jobs of some customers, a batch of each in turn; the next one when that is acknowledged."""
        due_s = dict.fromkeys(range(producer, self._customers, PRODUCERS), 0.0)
        for first in range(0, self._jobs, BATCH):
            for customer in due_s:
                numbers = range(first, min(first + BATCH, self._jobs))
                jobs = [self._job(customer, number) for number in numbers]
                wire = [
                    {
                        "topic": self.topic,
                        "id": job["id"],
                        "group": job["group"],
                        "ttr": TTR_S,
                        "retry": RETRY,
                        "retain": KEPT_S,
                        "idempotency_key": "one push",
                    }
                    for job in jobs
                ]
                if customer % 2:
                    for each in wire:
                        later_s = time.time() + self.bed.random.uniform(0, LONGEST_DELAY_S)
                        due_s[customer] = max(due_s[customer] + 0.001, later_s)
                        each["due"] = round(due_s[customer], 3)
                number = self.history.invoke("push", jobs)
                await self._surely(api, "/push", wire)
                told = [{"id": job["id"], "code": CODE_OK} for job in jobs]
                self.history.end(number, OK, "push", told)

    def _job(self, customer: int, number: int) -> Json:
        """What the history says of it; its due time is told by the pop."""
        name = f"{self.topic}/{customer}"
        place = {"id": f"{name}/{number:06}", "group": name, "number": number}
        return place | {"delay_s": 0, "ttr_s": TTR_S}

    async def _surely(self, api: Api, path: str, payload: Json | list[Json]) -> None:
        """Repeat until all is done: a push with a key is done once, whenever the first one comes."""
        while True:
            answer = await self._asked(api, path, payload)
            codes = _codes(answer)
            if codes and not any(codes):
                return
            assert {*codes} <= {CODE_OK, UNAVAILABLE}, answer

    async def _asked(self, api: Api, path: str, payload: object) -> Envelope | None:
        """The answer, None if there is none. After a failure, a pause."""
        try:
            answer = await api.call(path, payload)
        except (aiohttp.ClientError, TimeoutError, OSError):
            answer = None
        if answer is None or answer.code == UNAVAILABLE:
            self._counts[UNANSWERED] += 1
            await asyncio.sleep(PAUSE_S)
        return answer

    async def _kill_workers(self) -> None:
        """Kill one after the other, whatever it does; another one takes its place."""
        while True:
            await self.bed.pause(*WORKER_LIVES_S)
            place = self.bed.random.randrange(WORKERS)
            self._workers[place].cancel()
            self._workers[place] = self._tasks.create_task(self._work(place))
            self._counts[KILLED] += 1

    async def _work(self, place: int) -> None:
        """Until it is cancelled."""
        async with open_api(self._servers[place % SERVERS].url) as api:
            while True:
                payload = {
                    "topic": self.topic,
                    "timeout": POLL_S,
                    "count": self.bed.random.randint(1, MOST_TAKEN),
                }
                answer = await self._noted(api, "pop", (), payload)
                for job in (answer and answer.data) or []:
                    await self._handle(api, job)

    async def _handle(self, api: Api, job: Json) -> None:
        chance = self.bed.random.random()
        held = {"id": job["id"], "receipt": job["receipt"]}
        named = [{"id": job["id"], "attempt": job["attempt"]}]
        if chance < HANGS:
            await asyncio.sleep(TTR_S + POLL_S)
        fails = HANGS <= chance < HANGS + FAILS
        verb = "release" if fails else "finish"
        while True:
            answer = await self._noted(api, verb, named, held)
            if answer is None or answer.code == UNAVAILABLE:
                continue
            assert answer.code in {CODE_OK, GONE, STALE}, answer
            self._counts[LATE] += chance < HANGS and answer.code == STALE
            self._counts[FAILED] += fails
            if verb == "finish" and answer.code != STALE:
                self._ended.add(job["id"])
            return

    async def _noted(
        self, api: Api, verb: str, jobs: Sequence[Json], payload: Json
    ) -> Envelope | None:
        """Ask, and note in the history when that began and how it ended."""
        number = self.history.invoke(verb, jobs)
        answer = None
        try:
            answer = await self._asked(api, f"/{verb}", payload)
        finally:  # also if the worker is killed
            known = answer is not None and answer.code != UNAVAILABLE
            told: list[Json] = []
            if answer and verb == "pop":
                told = [{name: job[name] for name in TOLD} for job in answer.data or ()]
            elif answer:
                told = [{"id": job["id"], "code": answer.code} for job in jobs]
            self.history.end(number, OK if known else INFO, verb, told)
        return answer

    async def _drain(self, api: Api) -> None:
        """Wait until all has ended, or nothing has for PATIENCE_S."""
        loop = asyncio.get_running_loop()
        since_s = loop.time()
        while (left := self._left()) and loop.time() - since_s < PATIENCE_S:
            for job_id, state in (await self._states(api, left)).items():
                if state == ENDED:  # by a worker that was killed before it knew
                    again = [{"id": job_id, "attempt": 0}]
                    if await self._noted(api, "finish", again, {"id": job_id}):
                        self._ended.add(job_id)
            await asyncio.sleep(LOOK_S)
            if len(self._left()) < len(left):
                since_s = loop.time()

    async def _states(self, api: Api, ids: Sequence[str]) -> dict[str, str | None]:
        """What the server says about the jobs; None: there is none."""
        states: dict[str, str | None] = {}
        for part in batched(ids, MOST_IDS):
            number = self.history.invoke("get", ())
            found = (await api.call("/get", {"ids": part})).ok()
            some = {job_id: job and job["state"] for job_id, job in zip(part, found, strict=True)}
            told = [{"id": job_id, "state": state} for job_id, state in some.items()]
            self.history.end(number, OK, "get", told)
            states |= some
        return states

    def _left(self) -> list[str]:
        """The jobs whose end nobody knows."""
        return [
            job_id
            for customer in range(self._customers)
            for number in range(self._jobs)
            if (job_id := self._job(customer, number)["id"]) not in self._ended
        ]


def _codes(answer: Envelope | None) -> list[int]:
    """The code of each part; none without an answer."""
    if answer is None:
        return []
    if isinstance(answer.data, list):
        return [each["code"] for each in answer.data]
    return [answer.code]
