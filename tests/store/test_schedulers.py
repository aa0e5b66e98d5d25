"""The schedulers against each other: they give the same answers to everything."""

import random
from typing import Final

import pytest

from delayqueue.domain.job import State
from delayqueue.store.types import Listing, Range
from tests.store.bucket import HOUR_MS, Bucket, job
from tests.store.conftest import fake
from tests.store.turning import DAY_MS, START_MS, Clock, coarse

VERBS: Final = (
    *("push", "push", "push", "delete", "bury", "kick", "kick topic", "reschedule", "pop"),
    *("take", "list", "forecast", "purge", "counts", "get"),
)


async def step(bucket: Bucket, now_ms: int, dice: random.Random) -> object:  # noqa: C901, PLR0911  # a table
    """Run a verb on a bucket. Returns its answer."""
    some = dice.sample([f"{n}" for n in range(40)], dice.randint(1, 12))
    far_ms = dice.choice((1, 999, 60_000, HOUR_MS, 30 * HOUR_MS, 300 * DAY_MS))
    due = Range(*sorted(now_ms + dice.randint(-1, 60) * HOUR_MS for _ in range(2)))
    listing = Listing("t", "", "delayed", due)
    match dice.choice(VERBS):
        case "push":
            topics, delays = dice.choices("tu", k=12), [dice.randint(0, far_ms) for _ in some]
            jobs = zip(some, topics, delays, strict=False)
            return await bucket.push(*(job(i, topic=t, delay_ms=ms) for i, t, ms in jobs))
        case "delete":
            return await bucket.delete(*some)
        case "bury":
            return await bucket.bury(*some)
        case "kick":
            return await bucket.kick(*some)
        case "kick topic":
            return await bucket.store.kick_topic(0, "t", State.DELAYED, 3)
        case "reschedule":
            due_ms = now_ms + dice.randint(-far_ms, far_ms)
            return await bucket.reschedule(some[0], due_ms=due_ms)
        case "pop":
            return await bucket.pop_ids("t", "u", wanted=3)
        case "take":
            return [job.id for job in await bucket.take(due, most=4)]
        case "list":
            return [page async for page in bucket.pages(listing, dice.choice((1, 5, 1000)))]
        case "forecast":
            step_ms = dice.choice((1, 1000, 61_001, HOUR_MS, 5 * HOUR_MS + 77, DAY_MS))
            start_ms, topics = now_ms + dice.choice((-1, 0, 7, HOUR_MS)), ["t", "u", "none"]
            return await bucket.store.forecast(0, topics, start_ms, step_ms, 30)
        case "purge":
            return await bucket.store.purge(0, "u", "delayed", 3)
        case "counts":
            return await bucket.counts()
    return await bucket.store.get(0, some)


async def walk(bucket: Bucket, clock: Clock, seed: int) -> list[object]:
    """Run several verbs on a bucket while time passes. Returns all its answers."""
    dice = random.Random(seed)
    clock.now_ms = START_MS
    answers = []
    for _ in range(150):
        clock.pass_ms(dice.choice((0, 1, 700, 61_000, HOUR_MS, 5 * HOUR_MS)))
        if dice.random() < 0.2:
            await bucket.tick()
        answers.append(await step(bucket, clock.now_ms, dice))
    return answers


@coarse
@pytest.mark.parametrize("seed", range(5))
async def test_whatever_is_done_the_wheel_answers_as_the_sorted_sets_do(
    wheel: Bucket, clock: Clock, seed: int
) -> None:
    async with fake() as redis:
        sets = Bucket.over(redis)
        assert await walk(wheel, clock, seed) == await walk(sets, clock, seed)
