"""Whatever happens to jobs of groups: never one too many in hand, none overtakes in a strict order, none is left.

A poll waits all the time for all jobs of a topic. It asks for as many as were announced, and no more often, as a
server does between its looks once a second. The clock is the test's own (test_model.py).
"""

import random
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from delayqueue.domain.access import EVERYWHERE
from delayqueue.domain.call import Call
from delayqueue.domain.job import CALLS, USUAL_PRIORITY, IfExists, Job, PolledTopic, Reserved
from delayqueue.store import paging
from delayqueue.store.servers import Servers
from delayqueue.store.types import Change, Demand, Plan, Range
from delayqueue.store.verbs import (
    BURY,
    DELETE,
    FINISH,
    KICK,
    PUSH,
    RELEASE,
    REQUEUE,
    RESCHEDULE,
    RESERVE,
    Burial,
    Claim,
    Ending,
    Kick,
    Release,
    Requeue,
    Reschedule,
)
from tests.store.bucket import (
    ALL_WANTED,
    NONCES,
    Bucket,
    TagPage,
    VerbStore,
    dump_page,
    on_one_store,
)
from tests.store.contents import Contents, Record, parse, read
from tests.store.invariants import split, violations_of
from tests.store.test_model import CLOCK, stepped

TOPICS: Final = ("t", "u")
GROUPS: Final = ("a", "b", "c", "")  # "": none
IDS: Final = [f"{n}" for n in range(24)]
START_MS: Final = 1_700_000_000_000
MINUTE_MS: Final = 60_000
CALL: Final = Call(url="http://x/")
RETRIES: Final[list[tuple[int, ...] | None]] = [None, None, (2, 10), ()]
SEEDS: Final = range(4)
STEPS: Final = 250
LAST: Final = (("~", "~"), b"~")  # behind all places of ready jobs


class World:
    """A bucket, what polls were told, and which jobs a strict order waits for."""

    def __init__(self, bucket: Bucket, seed: int) -> None:
        self.at = random.Random(seed)
        self.bucket = bucket
        self.store = bucket.store
        self.now_ms = START_MS
        self.topics = self.at.choice([("t",), ("t",), TOPICS])
        self.groups = self.at.choice([("a",), ("a", "b"), ("a", ""), GROUPS])
        self.ids = IDS[: self.at.choice([8, 16, 24])]
        kinds: list[list[Call | None]] = [[None, CALL], [None], [None, None, CALL], [CALL]]
        self.calls = kinds[seed % len(kinds)]
        self.told: defaultdict[PolledTopic, int] = defaultdict(int)
        self.nonces: dict[str, str] = {}
        self.waits_for: dict[tuple[str, str], str] = {}  # topic and group -> the job that failed
        self.limits: dict[str, dict[str, Any]] = {topic: {} for topic in TOPICS}

    def hear(self, change: Change) -> None:
        for topic, count in change.ready:
            self.told[topic] += count

    async def contents(self) -> Contents:
        await self.bucket.redis.delete(CLOCK)
        contents = await read(self.bucket.redis, self.bucket.keys)
        await self.bucket.redis.set(CLOCK, self.now_ms)
        contents.now_ms = self.now_ms
        return contents

    async def records(self) -> dict[str, Record]:
        found = {i.decode(): parse(raw) for i, raw in (await self.contents()).job.items()}
        return {job_id: record for job_id, record in found.items() if record}

    async def ready(self) -> dict[str, tuple[tuple[str, str], bytes]]:
        """The topic and group of each ready job of a group, and its place among those of the group."""
        contents = await self.contents()
        found = {}
        for _, topic, rank, _ in contents.entries("grouped", "called_grouped"):
            group, place, job_id = split(rank)
            found[job_id.decode()] = (topic.decode(), group.decode()), place + job_id
        return found

    async def in_hand(self) -> dict[str, tuple[str, str]]:
        """The topic and group of each job that is reserved."""
        contents = await self.contents()
        hand = {}
        for _, topic, job_id, _ in contents.entries("reserved"):
            record = parse(contents.job[job_id])
            assert record is not None
            hand[job_id.decode()] = (topic.decode(), (record.group or b"").decode())
        return hand

    async def verb(self, verb: Any, *items: Any) -> Any:
        left = [*items]
        results: list[Any] = []
        while left:
            done, change = await self.store.run_verb(verb, 0, left)
            self.hear(change)
            results += done
            left = left[len(done) :]
        return results

    async def script(self, name: str, *args: Any) -> Any:
        reply = await self.store.call(name, 0, args)
        self.hear(reply.change)
        return reply

    # what happens

    def a_job(self) -> Job:
        at = self.at
        group = at.choice(self.groups)
        return Job(
            at.choice(self.topics),
            at.choice(self.ids),
            "body",
            at.choice([5, 5, MINUTE_MS]),
            delay_ms=at.choice([0, 0, 0, 3, 20]),
            if_exists=at.choice([IfExists.REPLACE, IfExists.KEEP]),
            priority=at.choice([USUAL_PRIORITY, USUAL_PRIORITY, 1, 5000]),
            tags=at.choice([(), ("x",), ("y",)]),
            expire_ms=at.choice([0, 0, 0, 15]),
            retain_ms=at.choice([0, 0, 10]),
            retry_ms=at.choice(RETRIES),
            call=at.choice(self.calls),
            texts={"group": group} if group else {},
        )

    async def push(self) -> None:
        await self.verb(PUSH, *(self.a_job() for _ in range(self.at.randint(1, 6))))

    async def pop(self) -> None:
        choices: list[tuple[PolledTopic, ...]] = [
            ("t",),
            ("u",),
            ("t", "u"),
            ("u", "t"),
            (CALLS,),
            ("t", "u", CALLS),
        ]
        topics = self.at.choice(choices)
        wanted = self.at.choice([1, 1, 2, 5, 20])
        await self.pop_of(
            topics, wanted, by_priority=self.at.random() < 0.3 and CALLS not in topics
        )

    async def pop_of(
        self, topics: tuple[PolledTopic, ...], wanted: int, *, by_priority: bool = False
    ) -> tuple[list[Reserved], bool]:
        """The jobs, and whether there are no more."""
        before, were_ready = await self.in_hand(), await self.ready()
        popped = await self.store.pop(0, [Demand(topics, wanted, by_priority)])
        self.hear(popped.change)
        jobs, complete = popped.jobs[0], popped.complete == 1
        after, are_ready = await self.in_hand(), await self.ready()
        assert len({job.id for job in jobs}) == len(jobs) <= wanted
        for job in jobs:
            assert job.id not in before
            self.nonces[job.id] = job.nonce
            place = after[job.id]
            topic, group = place
            if not group:
                continue
            hand = {i for i, its in after.items() if its == place}
            limit = self.limits[topic]
            most = 1 if limit.get("group_order") else limit.get("group_concurrency") or 99
            assert len(hand) <= most, (job.id, hand, limit)
            if limit.get("group_order"):
                assert self.waits_for.get(place, job.id) == job.id, (job.id, self.waits_for)
                mine = [its for its in are_ready.values() if its[0] == place]
                assert place in self.waits_for or were_ready[job.id] < min(mine, default=LAST)
        return jobs, complete and len(jobs) < wanted

    async def pick(self) -> str | None:
        hand = [*await self.in_hand()]
        return self.at.choice(hand) if hand else None

    def nonce(self, job_id: str) -> str | None:
        """Of its reservation, or of one that is over; sometimes none."""
        nonce = self.nonces.get(job_id)
        return nonce if nonce and self.at.random() < 0.9 else None

    async def finish(self) -> None:
        if job_id := await self.pick():
            await self.verb(FINISH, Ending(job_id, self.nonce(job_id), ""))

    async def finish_all(self) -> None:
        hand = [*await self.in_hand()]
        await self.verb(FINISH, *(Ending(job_id, None, "") for job_id in hand))

    async def finish_late(self) -> None:
        job_id = self.at.choice([*self.nonces, "none"])
        if job_id in self.nonces:
            await self.verb(FINISH, Ending(job_id, self.nonce(job_id) or "no-1", ""))

    async def release(self) -> None:
        if job_id := await self.pick():
            delay_ms = self.at.choice([0, 0, 4, 30, None])
            priority = self.at.choice([None, None, 1, 5000, USUAL_PRIORITY])
            await self.verb(RELEASE, Release(job_id, None, delay_ms, "why", priority=priority))

    async def bury(self) -> None:
        job_id = await self.pick() if self.at.random() < 0.6 else self.at.choice(self.ids)
        if job_id:
            await self.verb(BURY, Burial(job_id, None, "", self.at.choice([None, 1])))

    async def requeue(self) -> None:
        if job_id := await self.pick():
            nonce = self.nonces[job_id]
            await self.verb(
                REQUEUE, Requeue(job_id, nonce, delay_ms=self.at.choice([None, None, 5]))
            )

    async def reserve(self) -> None:
        [reserved] = await self.verb(
            RESERVE, Claim(job_id := self.at.choice(self.ids), next(NONCES))
        )
        if reserved.job:
            self.nonces[job_id] = reserved.job.nonce

    async def kick(self) -> None:
        await self.verb(
            KICK, Kick(self.at.choice(self.ids)), Kick(self.at.choice(self.ids), "other")
        )

    async def kick_topic(self) -> None:
        await self.script("kick", self.at.choice(TOPICS), self.at.choice(["buried", "delayed"]), 3)

    def page(self) -> TagPage:
        return TagPage(self.at.choice("xy"), self.at.choice([None, "t"]), 100, [b"0"], EVERYWHERE)

    async def kick_tag(self) -> None:
        await self.script(
            "kick_tag", self.at.choice(["buried", "delayed"]), *dump_page(self.page())
        )

    async def cancel(self) -> None:
        await self.script("cancel", *dump_page(self.page()))

    async def reschedule(self) -> None:
        plan = self.at.choice(
            [
                Plan(delay_ms=6),
                Plan(delay_ms=0),
                Plan(priority=3),
                Plan(by_ms=-5),
                Plan(by_ms=5, priority=USUAL_PRIORITY),
            ]
        )
        await self.verb(RESCHEDULE, Reschedule(self.at.choice(self.ids), plan))

    async def delete(self) -> None:
        await self.verb(DELETE, Ending(self.at.choice(self.ids), None, ""))

    async def purge(self) -> None:
        await self.script(
            "purge", self.at.choice(TOPICS), self.at.choice(["ready", "reserved", "delayed", ""]), 2
        )

    async def take(self) -> None:
        await paging.take(self.store, self.at.choice(TOPICS), Range(0, self.now_ms + 5), 2)

    async def pause(self) -> None:
        await self.script("pause", self.at.choice(TOPICS), self.at.choice([0, 7, ""]))

    async def limit(self) -> None:
        topic = self.at.choice(TOPICS)
        changes: dict[str, Any] = {
            "group_concurrency": self.at.choice([None, 1, 1, 2, 3]),
            "group_order": self.at.choice([None, None, True]),
        }
        if self.at.random() < 0.2:
            changes |= {
                "concurrency": self.at.choice([None, 1, 3]),
                "rate": self.at.choice([None, 200]),
            }
        await self.set_limit(topic, changes)

    async def set_limit(self, topic: str, changes: dict[str, Any]) -> None:
        limited = await self.store.limit(0, topic, changes)
        self.hear(limited.change)
        self.limits[topic] |= changes

    async def time_passes(self) -> None:
        await self.turn(self.at.choice([1, 1, 4, 12, 40]))

    async def turn(self, ms: int) -> None:
        self.now_ms += ms
        await self.bucket.redis.set(CLOCK, self.now_ms)
        while True:
            ticked = await self.store.tick(0)
            self.hear(ticked.change)
            if ticked.change.next_due_ms != 0:
                return

    async def sweep(self) -> None:
        await self.store.sweep(0, 0, 100, 50)

    # what must hold

    async def note_failures(self, before: dict[str, tuple[str, str]]) -> None:
        """Who failed meanwhile holds up its group where the order is strict; who is gone or buried no more."""
        contents, hand = await self.contents(), await self.in_hand()
        runs = contents.run
        for place, job_id in [*self.waits_for.items()]:
            raw = contents.job.get(job_id.encode())
            record = parse(raw) if raw else None
            is_there = record and (record.topic.decode(), (record.group or b"").decode()) == place
            if (
                not is_there
                or job_id.encode() in contents.buried[place[0].encode()]
                or job_id.encode() not in runs
            ):
                del self.waits_for[place]
        for job_id, place in before.items():
            raw = contents.job.get(job_id.encode())
            record = parse(raw) if raw else None
            if (
                not record
                or job_id in hand
                or (record.topic.decode(), (record.group or b"").decode()) != place
            ):
                continue
            has_failed = job_id.encode() in runs and runs[job_id.encode()].split()[1] != b"0"
            is_buried = job_id.encode() in contents.buried[place[0].encode()]
            if (
                place[1]
                and has_failed
                and not is_buried
                and self.limits[place[0]].get("group_order")
            ):
                self.waits_for.setdefault(place, job_id)

    async def poll(self, topic: PolledTopic) -> None:
        """Ask for as many as were announced; then nothing may be left for a poll that waits."""
        while self.told[topic] > 0:
            jobs, is_dry = await self.pop_of((topic,), min(self.told[topic], ALL_WANTED))
            self.told[topic] -= len(jobs)
            if is_dry:
                self.told[topic] = 0
        jobs, _ = await self.pop_of((topic,), ALL_WANTED)
        assert not jobs or topic is CALLS, f"nobody was told of {[job.id for job in jobs]}"
        self.told[topic] = 0

    async def check(self) -> None:
        found = violations_of(await self.contents(), self.bucket.wheel_slots)
        assert found == [], found

    async def step(self) -> None:
        ways: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (8, self.push),
            (8, self.pop),
            (6, self.finish),
            (4, self.finish_all),
            (2, self.finish_late),
            (5, self.release),
            (3, self.bury),
            (3, self.requeue),
            (2, self.reserve),
            (2, self.kick),
            (1, self.kick_topic),
            (1, self.kick_tag),
            (1, self.cancel),
            (3, self.reschedule),
            (2, self.delete),
            (1, self.purge),
            (1, self.take),
            (1, self.pause),
            (2, self.limit),
            (6, self.time_passes),
            (1, self.sweep),
        ]
        [way] = self.at.choices([way for _, way in ways], [weight for weight, _ in ways])
        before = await self.in_hand()
        await way()
        await self.note_failures(before)
        await self.check()
        if self.at.random() < 0.5:
            polled: list[PolledTopic] = [*self.topics, CALLS]
            for topic in polled:
                before = await self.in_hand()
                await self.poll(topic)
                await self.check()

    async def end(self) -> None:
        """Without limits all jobs are handed out, until each is finished."""
        for topic in TOPICS:
            await self.set_limit(
                topic, dict.fromkeys(("rate", "concurrency", "group_concurrency", "group_order"))
            )
            await self.script("pause", topic, "")
        for _ in range(20):
            await self.turn(2000)
            for topic in TOPICS:
                await self.script("kick", topic, "buried", 100)
                for what in (topic, CALLS):
                    while (await self.pop_of((what,), 3))[0]:
                        await self.finish_all()
            await self.finish_all()
        assert await self.records() == {}
        await self.check()


@on_one_store
@pytest.mark.parametrize("seed", SEEDS)
async def test_any_history_keeps_the_limits_of_groups_and_leaves_no_job(
    bucket: Bucket, seed: int
) -> None:
    scheduler = "wheel" if bucket.wheel_slots else "zset"
    store = VerbStore(
        Servers.one(bucket.redis), bucket.store.buckets, stepped(scheduler, bucket.wheel_slots)
    )
    world = World(Bucket(bucket.redis, bucket.keys, store, bucket.wheel_slots), seed)
    await bucket.redis.set(CLOCK, world.now_ms)
    try:
        for topic in TOPICS:
            await world.set_limit(topic, {"group_concurrency": world.at.randint(1, 3)})
        for _ in range(STEPS):
            await world.step()
        await world.end()
    finally:
        await bucket.redis.delete(CLOCK)
