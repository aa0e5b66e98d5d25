"""Verbs for many jobs: the work of a call is bounded, however large the jobs are and however many tags they have."""

from collections.abc import Awaitable, Callable
from functools import partial
from itertools import pairwise
from typing import Any, Final

import pytest

from delayqueue.domain.access import EVERYWHERE, Scope
from delayqueue.domain.job import MAX_TAGS, Job, State
from delayqueue.engine.fsck import examine
from delayqueue.errors import Code, Unavailable
from delayqueue.store.call import ScriptCall
from delayqueue.store.types import START, Finding, Listing, Piece, Plan, Pushed, TagPlace
from delayqueue.store.verbs import FINISH, Burial, Ending, Kick
from tests.engine.moving import all_jobs, in_any_state
from tests.store.between import Send, intercept
from tests.store.bucket import ALWAYS, HOUR_MS, Bucket, TagPage, a_moment, job, on_one_store

pytestmark = on_one_store

MIB: Final = 1 << 20
JOBS: Final = 12
FIT: Final = 2  # jobs of a little more than 1 MiB that one call processes
LOOKED_AT: Final = 4  # of them in a call of an inspection
IDS: Final = [f"job-{n:02}" for n in range(JOBS)]


def large(job_id: str, **options: Any) -> Job:
    return job(job_id, body="x" * MIB, tags=("large",), retain_ms=HOUR_MS, **options)


async def with_large_jobs(bucket: Bucket, **options: Any) -> None:
    for job_id in IDS:
        await bucket.push(large(job_id, **options))


@pytest.mark.parametrize("verb", ["finish", "delete", "bury", "kick"])
async def test_a_call_comes_to_so_many_bytes_of_jobs_and_says_how_far_it_came(
    bucket: Bucket, verb: str
) -> None:
    await with_large_jobs(bucket, delay_ms=HOUR_MS)
    item: Any = {"bury": partial(Burial, nonce=None, message=""), "kick": Kick}.get(
        verb, partial(Ending, nonce=None, message="")
    )
    items = [item(job_id) for job_id in IDS]
    codes, _ = await getattr(bucket.store, verb)(0, items)
    assert codes == [0] * FIT
    queue = all_jobs(bucket.store)
    if verb == "bury":
        assert await bucket.bury(*IDS[FIT:]) == [0] * (JOBS - FIT)
    elif verb == "kick":
        assert await queue.kick(IDS[FIT:]) == [0] * (JOBS - FIT)
    else:
        assert await getattr(queue, verb)(in_any_state(IDS[FIT:])) == [0] * (JOBS - FIT)
    state = {"finish": "finished", "delete": "cancelled", "bury": "buried", "kick": "ready"}[verb]
    for job_id in IDS:
        assert await bucket.state(job_id) == state


async def test_a_push_replaces_so_many_bytes_of_jobs_in_a_call(bucket: Bucket) -> None:
    await with_large_jobs(bucket)
    small = [job(job_id, body="new") for job_id in IDS]
    assert (await bucket.store.push(0, small)).codes == [0] * FIT
    assert await all_jobs(bucket.store).push_many(small) == [Pushed(Code.OK)] * JOBS
    assert [each.body for each in await bucket.pop()] == [b"new"] * JOBS


@pytest.mark.parametrize("verb", ["cancel", "kick", "reschedule"])
async def test_the_jobs_of_a_tag_are_changed_so_many_bytes_at_a_time(
    bucket: Bucket, verb: str
) -> None:
    await with_large_jobs(bucket, delay_ms=HOUR_MS)
    due_ms = await bucket.now_ms() + 2 * HOUR_MS
    change: Any = {
        "cancel": bucket.store.cancel,
        "kick": partial(bucket.store.kick_tag, state=State.DELAYED),
        "reschedule": partial(bucket.store.reschedule_tag, plan=Plan(due_ms=due_ms)),
    }[verb]
    position: TagPlace | None = None
    counts = list[int]()
    while position != START:
        position, count, *_ = await change(
            0, TagPage("large", None, 100, position or START, EVERYWHERE)
        )
        counts.append(count)
    assert max(counts) <= FIT
    assert sum(counts) == JOBS


async def test_no_job_of_a_tag_is_looked_at_for_a_topic_without_jobs(bucket: Bucket) -> None:
    await with_large_jobs(bucket)
    await bucket.push(job("a", topic="had one", delay_ms=HOUR_MS))
    await bucket.delete("a")
    for topic in ("none", "had one"):
        cancelled = await bucket.store.cancel(0, TagPage("large", topic, 1, START, EVERYWHERE))
        assert cancelled[:2] == (START, 0)


@pytest.mark.parametrize("state", ["delayed", "ready", "reserved", "buried", "ended"])
async def test_a_state_is_purged_so_many_bytes_at_a_time(bucket: Bucket, state: str) -> None:
    await with_large_jobs(bucket, delay_ms=HOUR_MS if state == "delayed" else 0)
    if state == "reserved":
        while await bucket.pop():
            pass
    elif state == "buried":
        await bucket.bury(*IDS)
    elif state == "ended":
        await bucket.finish(*IDS)
    more, counts = True, list[int]()
    while more:
        count, more, _ = await bucket.store.purge(0, "t", state, 500)
        counts.append(count)
    assert max(counts) == FIT
    assert sum(counts) == JOBS


async def test_reservations_run_out_so_many_bytes_at_a_time(bucket: Bucket) -> None:
    await with_large_jobs(bucket, ttr_ms=1)
    while await bucket.pop():
        pass
    ticks = list[int]()
    while sum(ticks) < JOBS:
        ticks.append((await bucket.store.tick(0)).redelivered)
    assert max(ticks) == FIT


def buries(bucket: Bucket) -> dict[str, Callable[[list[str]], Awaitable[int]]]:
    """Ways to bury reserved jobs. Each is one call, and returns how many jobs it buried."""

    async def run(verb: str, *parts: str, ids: list[str]) -> int:
        arguments = [argument for job_id in ids for argument in (job_id, "", "", *parts)]
        return len((await bucket.store.call(verb, 0, arguments)).results)

    async def tick(_: list[str]) -> int:
        return (await bucket.store.tick(0)).buried

    return {
        "tick": tick,
        "bury": lambda ids: run("bury", "", ids=ids),
        "postpone": lambda ids: run("postpone", '["nobody"]', ids=ids),
    }


@pytest.mark.parametrize("way", ["tick", "bury", "postpone"])
@pytest.mark.parametrize("is_reported", [False, True], ids=["not", "reported"])
async def test_a_call_reports_one_large_dead_letter(
    bucket: Bucket, way: str, *, is_reported: bool
) -> None:
    """To quote its body in the report takes longer than all else that is done to it."""
    if is_reported:
        await bucket.store.limit(0, "t", {"buried_to": "dead"}, declared=False)
    await with_large_jobs(bucket, ttr_ms=1 if way == "tick" else HOUR_MS, retry_ms=())
    while await bucket.pop():
        pass
    counts, left = list[int](), IDS
    while left:
        counts.append(await buries(bucket)[way](left))
        left = [each for each in left if await bucket.state(each) == "reserved"]
    assert max(counts) == (1 if is_reported else FIT)
    assert sum(counts) == JOBS
    assert (await bucket.counts("dead")).ready == (JOBS if is_reported else 0)


async def test_jobs_with_a_priority_become_ready_so_many_bytes_at_a_time(bucket: Bucket) -> None:
    """For that, their records must be read."""
    for job_id in IDS:
        await bucket.push(large(job_id, delay_ms=HOUR_MS, priority=1))
    await bucket.push(job("usual", delay_ms=HOUR_MS))
    for job_id in ("usual", *IDS):
        await bucket.reschedule(job_id, delay_ms=0)
    counts, ready = list[int](), 0
    while ready < JOBS + 1:
        await bucket.store.tick(0)
        counts.append((await bucket.counts()).ready - ready)
        ready += counts[-1]
    assert counts == [FIT + 1] + [FIT] * (JOBS // FIT - 1)
    ids = [each.id for _ in range(JOBS + 1) for each in await bucket.pop(wanted=1)]
    assert ids == [*IDS, "usual"]


async def test_a_push_comes_to_so_many_tags_in_a_call(bucket: Bucket) -> None:
    tags = tuple(f"tag-{n}" for n in range(MAX_TAGS))
    jobs = [job(f"job-{n}", tags=tags) for n in range(1000)]
    assert len((await bucket.store.push(0, jobs)).codes) < 20
    assert await bucket.push(*jobs) == [0] * 1000
    ids = [f"job-{n}" for n in range(1000)]
    codes, _ = await bucket.store.finish(0, [Ending(job_id, None, "") for job_id in ids])
    assert len(codes) < 20
    assert await bucket.finish(*ids) == [0] * 1000


async def test_what_a_call_did_not_come_to_of_a_tag_is_left_alone_if_it_has_the_tag_no_more(
    bucket: Bucket,
) -> None:
    await with_large_jobs(bucket)
    position, count, _ = await bucket.store.cancel(
        0, TagPage("large", None, 100, START, EVERYWHERE)
    )
    assert (count, len(position)) == (FIT, 1 + JOBS - FIT)
    kept = position[1].decode()
    await bucket.push(job(kept))
    while position != START:
        position, more, _ = await bucket.store.cancel(
            0, TagPage("large", None, 100, position, EVERYWHERE)
        )
        count += more
    assert count == JOBS - 1
    assert await bucket.state(kept) == "ready"


async def test_large_jobs_go_back_in_their_order(bucket: Bucket) -> None:
    await with_large_jobs(bucket)
    reserved = [each for _ in range(JOBS) for each in await bucket.pop(wanted=1)]
    await bucket.requeue(*reserved)
    assert [each.id for _ in range(JOBS) for each in await bucket.pop(wanted=1)] == IDS


async def test_topics_are_counted_and_jobs_weighed_however_large_their_jobs_are(
    bucket: Bucket,
) -> None:
    topics = [f"topic-{n}" for n in range(JOBS)]
    for job_id, topic in zip(IDS, topics, strict=True):
        await bucket.push(large(job_id, topic=topic))
    counts = await bucket.store.topics(0, topics)
    assert [(each.ready, each.oldest_age_ms is None) for each in counts] == [(1, False)] * JOBS
    weights: list[int] = []
    while len(weights) < JOBS:
        weights += await bucket.store.weigh(0, IDS[len(weights) :], Scope(("topic-*",)))
    assert [weight > MIB for weight in weights] == [True] * JOBS


async def test_ghosts_among_large_jobs_are_dropped_some_at_a_time(bucket: Bucket) -> None:
    await with_large_jobs(bucket)
    await bucket.finish(IDS[-1])
    dropped = 0
    while not dropped:
        dropped = (await bucket.store.sweep(0, 0, 20)).ghosts
        await a_moment()  # the store's clock decides where a sweep looks
    assert dropped == 1


async def test_what_one_call_did_is_told_though_the_next_one_fails(bucket: Bucket) -> None:
    await with_large_jobs(bucket)
    calls = 0

    def fail_the_second(_: Any, call: ScriptCall, sends: Send) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            call.end(Unavailable())
        else:
            sends(call)

    intercept(bucket.store, fail_the_second)
    codes = await all_jobs(bucket.store).finish(in_any_state(IDS))
    assert codes == [Code.OK] * FIT + [Code.UNAVAILABLE] * (JOBS - FIT)


@pytest.mark.parametrize("name", ["tag:large", "buried:t", "done:t"])
async def test_an_inspection_looks_at_so_many_bytes_of_jobs_at_a_time(
    bucket: Bucket, name: str
) -> None:
    await with_large_jobs(bucket)
    await (bucket.finish(*IDS) if name == "done:t" else bucket.bury(*IDS))
    pieces, steps = [Piece(name.encode(), b"0")], 0
    while pieces:
        inspected = await bucket.store.bucket(0).inspect(pieces, 100, repair=False)
        assert inspected.findings == []
        pieces, steps = inspected.pieces, steps + 1
    assert steps >= JOBS / LOOKED_AT


Act = Callable[["Bucket", list[str]], Awaitable[object]]
MANY: Final = TagPage("many", None, 1000, START, EVERYWHERE)
ACTS: Final[dict[str, Act]] = {
    "cancel": lambda bucket, _: bucket.store.cancel(0, MANY),
    "kick a tag": lambda bucket, _: bucket.store.kick_tag(0, MANY, state=State.DELAYED),
    "kick a topic": lambda bucket, _: bucket.store.kick_topic(0, "t", State.DELAYED, 1000),
    "another due time": lambda bucket, _: bucket.store.reschedule_tag(0, MANY, Plan(by_ms=1)),
    "another priority": lambda bucket, _: bucket.store.reschedule_tag(0, MANY, Plan(priority=3)),
    "purge": lambda bucket, _: bucket.store.purge(0, "t", "", 1000),
    "inspect": lambda bucket, _: bucket.store.bucket(0).inspect(
        [Piece(b"tag:many", b"0")], 1000, repair=False
    ),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
async def test_a_call_comes_to_so_many_commands(bucket: Bucket, act: Act) -> None:
    ids = [f"job-{n:03}" for n in range(1000)]
    options: Any = {"tags": ("many", "more"), "expire_ms": HOUR_MS, "retain_ms": HOUR_MS}
    await bucket.push(*(job(job_id, delay_ms=HOUR_MS, **options) for job_id in ids))
    before = await commands(bucket)
    await act(bucket, ids)
    assert 100 < await commands(bucket) - before < 1000


@pytest.mark.parametrize(("groups", "most"), [(1, 1.2), (200, 2.5)])
async def test_jobs_of_groups_take_few_commands_more(
    bucket: Bucket, groups: int, most: float
) -> None:
    """What jobs of one group, or each of a group of its own, take beside jobs without a group."""
    taken: list[int] = []
    alone: list[dict[str, str]] = [{}]
    for texts in alone, [{"group": f"g{n}"} for n in range(groups)]:
        before = await commands(bucket)
        await bucket.push(*(job(f"job-{n}", texts=texts[n % len(texts)]) for n in range(200)))
        while jobs := await bucket.pop(wanted=100):
            endings = [Ending(each.id, each.nonce, "") for each in jobs]
            assert await bucket.store.all_of(FINISH, endings) == [Code.OK] * len(jobs)
        taken.append(await commands(bucket) - before)
    assert taken[1] < most * taken[0], taken


async def test_a_job_of_the_only_group_takes_few_commands_more(
    bucket: Bucket, request: pytest.FixtureRequest
) -> None:
    """Each of ten that are pushed, taken and finished one by one, beside ten jobs without a group.

    A script does not know from the push before that the group's keys are sound, as functions do.
    """
    counts: list[list[int]] = []
    for topic, texts in ("t", {}), ("u", {"group": "alone"}):
        await bucket.push(*(job(f"{topic}-{n}", topic=topic, texts=texts) for n in range(10)))
        counts.append([await commands(bucket)])
        for n in range(10, 20):
            await bucket.push(job(f"{topic}-{n}", topic=topic, texts=texts))
        counts[-1].append(await commands(bucket))
        taken = [await bucket.pop_one(topic) for _ in range(10)]
        counts[-1].append(await commands(bucket))
        for each in taken:
            assert await bucket.finish(each.id, nonce=each.nonce) == [Code.OK]
        counts[-1].append(await commands(bucket))
    plain, grouped = ([after - before for before, after in pairwise(each)] for each in counts)
    push, pop, finish = (more - less for less, more in zip(plain, grouped, strict=True))
    is_script = request.node.callspec.params["redis"] == "redis_without_functions"
    assert push <= 10 * (10 if is_script else 3)
    assert pop <= 10 * 4 + 5  # the group's first turn is found in another place
    assert finish <= 10 * 3


async def commands(bucket: Bucket) -> int:
    stats = await bucket.redis.info("commandstats")
    return sum(each["calls"] for each in stats.values())


async def test_a_call_lists_so_many_jobs_of_a_tag_and_says_where_to_go_on(bucket: Bucket) -> None:
    ids = {f"job-{n}" for n in range(1000)}
    await bucket.push(*(job(job_id, tags=("many",)) for job_id in ids))
    what = Listing("", "many", "", ALWAYS)
    args = [what.topic, what.tag, what.state, *what.due, 1000, 0, *START]
    place, found, *_ = (await bucket.store.call("list", 0, args)).results
    assert 50 < len(found) < 300
    assert place != START
    assert {
        view.id for views in [each async for each in bucket.pages(what, 1000)] for view in views
    } == ids


async def test_an_inspection_of_jobs_with_tags_comes_to_fewer(bucket: Bucket) -> None:
    tags = tuple(f"tag-{n}" for n in range(3))
    await bucket.push(*(job(f"plain-{n}") for n in range(3000)))
    pieces = [Piece(b"job", b"0")]
    plain = await bucket.store.bucket(0).inspect(pieces, 10_000, repair=False)
    await bucket.redis.flushall()
    await bucket.push(*(job(f"tagged-{n}", tags=tags) for n in range(600)))
    tagged = await bucket.store.bucket(0).inspect(pieces, 10_000, repair=False)
    assert 50 < tagged.looked < plain.looked < 3000


async def test_an_inspection_finds_what_is_wrong_among_large_jobs(bucket: Bucket) -> None:
    await with_large_jobs(bucket)
    strangers = [f"none-{n}" for n in range(20)]
    await bucket.redis.sadd(bucket.key("tag:large"), *strangers)
    findings = set[Finding]()
    report = await examine(bucket.store, lambda _, found: findings.add(found), repair=True)
    assert {found.id for found in findings} == set(strangers)
    assert (report.repaired["entry"], report.left["entry"]) == (20, 0)
