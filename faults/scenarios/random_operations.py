"""Row 29: many clients send random requests at once; each job is proved, again and again, to be in a possible state."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from itertools import zip_longest
from pathlib import Path
from typing import Final

from redis.asyncio import Redis

from delayqueue.tasks import cancel_all
from faults.attack.attackers import PauseGate, attack
from faults.attack.random_client import (
    LIMITED,
    MOST_RESERVED,
    SCHEDULES,
    STATES,
    TICKS,
    TOPICS,
    Crowd,
    now_ms,
)
from faults.attack.reality import Plan, Reality, look
from faults.attack.shadow import Shadow
from faults.attack.webhook_load import NAMES, WebhookLoad
from faults.attack.webhook_load import TOPIC as HOOK
from faults.bed import DATABASE, START_S, Bed, Figures, assert_fsck_finds_nothing, redis_of
from faults.clock import Clock
from faults.load import STALE
from tests.api_client import Api
from tests.delivery.receiver import Receiver, receiving
from tests.processes import REPOSITORY
from tests.waiting import until, until_async

SETTINGS: Final[Figures] = {
    "webhook_allow": "127.0.0.1/32",
    "language": "en",
    # nothing breaks: a store that answers late is one on a busy machine
    "redis.read_timeout": 60_000,
    "redis.write_timeout": 60_000,
}

IDS: Final = 80
CLIENTS: Final = 12
HOLD_S: Final = 1.0  # between two holds
SOON_S: Final = 0.25  # on a busy machine requests overlap for long, and states multiply
LOOKS: Final = 4  # looks at the store under load, between two holds
LATE_MS: Final = 20_000  # a timer that is later than this has stopped
QUIET_TRIES: Final = 100  # until nothing moves by itself for a moment
DRAINED_S: Final = 30.0
FORGOTTEN_S: Final = 30.0
MOST_UNJUDGED: Final = 0.1  # of the ids at a hold; with more, the next hold comes soon
LEAST_JUDGED: Final = 0.5  # of the ids at all holds
MOST_JOBS: Final = 1000
STEPS_S: Final = (0, 1, -1, 3600, -3600, 400 * 86_400, -400 * 86_400)
MOST_SHOWN: Final = 5


async def random_operations(
    bed: Bed,
    *,
    seconds: float,
    plans: Sequence[tuple[str, int]],
    clocks_step: bool = False,
    program: Path = REPOSITORY,
) -> Figures:
    """Each plan, a scheduler and a number of buckets, for this long, with two servers on one store.

    `clocks_step`: those of the servers are set to other times meanwhile. `program` is the folder that the servers'
    package is in.
    """
    figures: Figures = {"plans": len(plans)}
    for scheduler, buckets in plans:
        store = bed.store()
        plan = Plan(scheduler, buckets)
        settings = plan.settings() | SETTINGS
        servers = [bed.new_server(store, **settings) for _ in range(2)]
        clocks = [Clock(server.home / "clock") for server in servers] if clocks_step else []
        for server, clock in zip_longest(servers, clocks):
            server.wrap(*(clock.wrapper if clock else ["env"]), f"PYTHONPATH={program}")
            server.launch()
        for server in servers:
            await until(server.is_ready, within_s=START_S)
        async with redis_of(store) as redis, receiving() as receiver, AsyncExitStack() as stack:
            apis = [await stack.enter_async_context(bed.api(server)) for server in servers]
            steps = asyncio.create_task(_step(clocks, bed.random))
            stack.push_async_callback(cancel_all, [steps])
            found = await Attack(redis, plan, apis, receiver, bed.seed).run(seconds)
        assert_fsck_finds_nothing(store.settings(DATABASE) | settings)
        for process in (*servers, store):
            process.stop()
        figures |= {name: figures.get(name, 0) + value for name, value in found.items()}
    return figures


async def _step(clocks: Sequence[Clock], rng: random.Random) -> None:
    """Set clocks again and again."""
    while clocks:
        await asyncio.sleep(rng.uniform(0.3, 2))
        rng.choice(clocks).set(rng.choice(STEPS_S))


class Attack:
    """An attack on the servers of one plan, and its judges."""

    def __init__(
        self, redis: Redis, plan: Plan, apis: Sequence[Api], receiver: Receiver, seed: int
    ) -> None:
        self._redis = redis
        self._plan = plan
        self._apis = apis
        self._seed = seed
        self._gate = PauseGate()
        self._crowd = Crowd(apis, Shadow([f"job/{number}" for number in range(IDS)], now_ms()))
        self._webhooks = WebhookLoad(apis, receiver, self._gate, seed)
        self._counts: Counter[str] = Counter()
        self._hold_s = HOLD_S

    async def run(self, seconds: float) -> dict[str, int]:
        """Attack for this long, then check that all jobs end. Raises AssertionError as soon as something is wrong."""
        limit = {"topic": LIMITED, "concurrency": MOST_RESERVED}
        (await self._apis[0].call("/limit", limit)).ok()
        await self._webhooks.subscribe(NAMES[0])
        crowd = attack(self._crowd, self._gate, seed=self._seed, clients=CLIENTS)
        tasks = [asyncio.create_task(each) for each in (crowd, self._webhooks.run())]
        until_s = time.monotonic() + seconds
        try:
            while any(not task.done() for task in tasks):
                await self._watch(tasks)
                async with self._gate.held():
                    await self._prove()
                    if time.monotonic() > until_s:
                        await cancel_all(tasks)
        finally:
            await cancel_all(tasks)
        await self._end()
        return {
            "requests": self._crowd.counts.total(),
            "abandoned": self._crowd.abandoned.total(),
            "operations judged": self._crowd.shadow.judged,
            "too many states": self._crowd.shadow.unjudged,
            "webhook calls": self._webhooks.calls,
            **self._counts,
        }

    async def _watch(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Look at the store while the load continues."""
        for _ in range(LOOKS):
            await asyncio.sleep(self._hold_s / LOOKS)
            await self._look()
            self._counts["looks under load"] += 1
            for task in tasks:
                if task.done():
                    task.result()

    async def _look(self) -> Reality:
        """The contents of the store. Raises AssertionError if they are not whole, which they must be at any moment."""
        real = await look(self._redis, self._plan)
        wrong = [*real.violations, *real.late(LATE_MS)]
        reserved = sum(len(bucket.reserved[LIMITED.encode()]) for bucket in real.buckets)
        if reserved > MOST_RESERVED and LIMITED in real.limited():
            wrong.append(f"{reserved} jobs of the limited topic are reserved")
        _assert_nothing(wrong)
        return real

    async def _prove(self) -> None:
        """What must hold while there are no requests."""
        self._counts["holds"] += 1
        real = await self._look()
        states = real.states(self._crowd.heard)
        shadow = self._crowd.shadow
        unjudged = shadow.unjudged
        wrong = shadow.judge({i: states[i] for i in shadow if i in states}, real.now_ms)
        wrong += self._webhooks.judge(real.ids())
        wrong += self._crowd.wrong
        if len(shadow.stuck) > self._crowd.abandoned["pop"]:
            wrong.append(f"reserved for nobody: {shadow.stuck}")
        if shadow.unjudged > (1 - LEAST_JUDGED) * IDS * self._counts["holds"]:
            wrong.append(f"{shadow.unjudged} times an id had too many possible states")
        self._hold_s = HOLD_S if shadow.unjudged - unjudged <= MOST_UNJUDGED * IDS else SOON_S
        _assert_nothing(wrong)
        for api in self._apis:
            await self._compare_counts(api)

    async def _compare_counts(self, api: Api) -> None:
        """/topics counts exactly what is there. If something moved by itself meanwhile, it is asked again."""
        for _ in range(QUIET_TRIES):
            before = await self._look()
            shown = (await api.call("/topics", {})).ok()
            after = await self._look()
            if before.states(set()) == after.states(set()):
                said = {each["topic"]: {state: each[state] for state in STATES} for each in shown}
                said = {topic: counts for topic, counts in said.items() if any(counts.values())}
                assert said == after.counts(), f"/topics says {said}, there are {after.counts()}"
                return
        self._counts["counts not compared"] += 1

    async def _end(self) -> None:
        """All jobs can be popped and ended, and then nothing is left."""
        api, topics = self._apis[0], (*TOPICS, LIMITED, TICKS, HOOK)
        for name in SCHEDULES:
            await api.call("/unschedule", {"name": name})
        await self._webhooks.subscribe(NAMES[0])
        for topic in topics:
            lifted = {"topic": topic, "rate": None, "concurrency": None}
            (await api.call("/resume", {"topic": topic})).ok()
            (await api.call("/limit", lifted)).ok()
        await until_async(lambda: self._drained(api, topics), within_s=DRAINED_S)
        for name in NAMES:
            await self._webhooks.unsubscribe(name)
        _assert_nothing(self._webhooks.judge(set()))
        try:
            await until_async(self._is_empty, within_s=FORGOTTEN_S)
        except AssertionError:
            _assert_nothing((await self._look()).left())

    async def _is_empty(self) -> bool:
        return not (await self._look()).left()

    async def _drained(self, api: Api, topics: Sequence[str]) -> bool:
        """Pop jobs and finish them. Returns whether none is left."""
        for topic in topics:
            (await api.call("/kick", {"topic": topic, "count": MOST_JOBS})).ok()
            if topic != HOOK:
                jobs = (await api.pop(topic, timeout=0, count=MOST_JOBS)).ok()
                for job in jobs:
                    ended = await api.finish(job["id"], receipt=job["receipt"])
                    # on a busy machine, its TTR of a second can have passed: it comes again
                    if ended.code != STALE:
                        ended.ok()
        return not (await self._look()).ids()


def _assert_nothing(wrong: Sequence[str]) -> None:
    assert not wrong, "\n".join([f"{len(wrong)} things are wrong:", *wrong[:MOST_SHOWN]])
