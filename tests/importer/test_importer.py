"""An import takes each job over once, whatever its state and whoever else works on it."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from delayqueue.config.startup import StartupError
from delayqueue.domain.job import Reserved
from delayqueue.domain.limit import WhenFull
from delayqueue.engine.importer import Importer
from delayqueue.errors import Unavailable
from delayqueue.store.original import Place, source
from delayqueue.store.original.source import AnotherImport, Original
from delayqueue.store.topics import set_limit
from delayqueue.store.verbs import RESERVE, STAGED_DUE_MS, Claim
from tests.store.bucket import job
from tests.waiting import until, until_async

from .conftest import BEAT_S, PATIENCE_S, Move, in_every_setup

HOUR_S = 3600
NEAR_S = 60  # far less than an hour, far more than a test takes
MOST_POPPED = 100


@contextlib.asynccontextmanager
async def running(move: Move, consumers: int = 0) -> AsyncIterator[None]:
    """The old server's timers tick, and this many consumers pop and finish.

    A flag stops them: a cancellation can get lost in redis-py. On a busy machine, the server only stumbles: it is not
    taken for dead.
    """
    stopped = asyncio.Event()
    tasks = [move.old.run(lambda _: "t", stopped, beat_s=BEAT_S)]
    tasks += [consume(move, stopped) for _ in range(consumers)]
    running = asyncio.gather(*tasks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "DEAD_S", 2 * PATIENCE_S)
        try:
            yield
        finally:
            stopped.set()
            await running


async def consume(move: Move, stopped: asyncio.Event) -> None:
    """Pop and finish jobs, but leave some to an import that is slower."""
    while not stopped.is_set() and len(move.old.popped) < MOST_POPPED:
        job_id = await move.old.pop("t", ttr_s=HOUR_S)
        if job_id:
            await move.old.finish(job_id)
        await asyncio.sleep(BEAT_S)


@in_every_setup
async def test_every_job_of_a_stopped_server_arrives_once(move: Move) -> None:
    now = int(time.time())
    await move.old.push("t", "delayed", HOUR_S, body="排队 🐘")
    await move.old.make_ready("t", "ready", ttr_s=7)
    await move.old.hand_out("t", "handed out", ttr_s=600)
    await move.old.push("t", "due", -5)
    await move.old.push("t", "finished", HOUR_S)
    await move.old.finish("finished")
    it = await move.run()
    assert it.imported == {Place.DELAYED: 1, Place.READY: 1, Place.RESERVED: 1, Place.DUE: 1}
    assert (it.dropped_entries, it.set_aside) == (1, 0)
    assert await move.left() == set()
    await move.new.tick()
    arrived = await move.arrived("delayed", "ready", "handed out", "due", "finished")
    assert {job_id: state for job_id, (state, _) in arrived.items()} == {
        "delayed": "delayed",
        "ready": "ready",
        "handed out": "delayed",
        "due": "ready",
    }
    assert arrived["delayed"][1] == pytest.approx(now + HOUR_S, abs=NEAR_S)
    assert arrived["handed out"][1] == pytest.approx(now + 600, abs=NEAR_S)
    view = await move.view("delayed")
    assert (view.topic, view.body, view.ttr_ms) == ("t", "排队 🐘".encode(), 60_000)
    assert (await move.view("ready")).ttr_ms == 7000


async def test_thousands_of_jobs_in_many_topics_arrive(move: Move) -> None:
    ids = [f"job-{n}" for n in range(2100)]
    for n, job_id in enumerate(ids):
        if n % 3:
            await move.old.push(f"topic-{n % 7}", job_id, HOUR_S + n)
        else:
            await move.old.make_ready(f"topic-{n % 7}", job_id)
    it = await move.run()
    assert it.imported == {Place.DELAYED: 1400, Place.READY: 700}
    assert len(await move.arrived(*ids)) == 2100
    assert await move.left() == set()


async def test_large_bodies_go_over_a_few_at_a_time(
    move: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "ANSWER_BYTES", 3000)
    ids = [f"job-{n}" for n in range(9)]
    for n, job_id in enumerate(ids):
        await move.old.push("t", job_id, HOUR_S, body="b" * 1000 * n)
    await move.run()
    for n, job_id in enumerate(ids):
        assert (await move.view(job_id)).body == b"b" * 1000 * n


async def test_jobs_that_lost_their_place_in_a_crash_are_found(move: Move) -> None:
    now = int(time.time())
    await move.old.store("t", "pushed", now + HOUR_S)
    await move.old.store("t", "popped", now - 5, ttr_s=600)
    it = await move.run()
    assert it.imported == {Place.DELAYED: 1, Place.LOST: 1}
    arrived = await move.arrived("pushed", "popped")
    assert arrived["pushed"] == ("delayed", now + HOUR_S)
    assert arrived["popped"][1] == pytest.approx(now + 600, abs=NEAR_S)


async def test_what_is_no_job_is_left_alone(move: Move) -> None:
    await move.old.redis.set("session", "of somebody else")
    await move.old.redis.hset("profile", "name", "Ann")
    await move.old.redis.sadd("dq_queue_", "odd")
    await move.old.push("t", "a", HOUR_S)
    await move.run()
    assert await move.left() == {b"session", b"profile", b"dq_queue_"}


@pytest.mark.parametrize("name", ["dq_bucket_1", "dq_queue_t", "{dq_bucket_1}:job", "*", " \n"])
async def test_an_id_that_is_the_name_of_a_key_arrives(move: Move, name: str) -> None:
    await move.old.store("t", name, int(time.time()) + HOUR_S)
    await move.old.redis.zadd("dq_bucket_2", {name: time.time() + HOUR_S})
    await move.old.push("t", "bystander", HOUR_S)
    await move.run()
    assert len(await move.arrived(name, "bystander")) == 2


async def test_an_id_of_1024_bytes_arrives_and_a_longer_one_is_set_aside(move: Move) -> None:
    for length in (1024, 1025):
        await move.old.push("t", "x" * length, HOUR_S)
    await move.run()
    assert len(await move.arrived("x" * 1024)) == 1
    assert await move.set_aside() == {"x" * 1025: "id: 1025 bytes, at most 1024"}


async def test_what_cannot_be_taken_over_is_set_aside_with_its_record(move: Move) -> None:
    await move.old.push("a,b", "comma", HOUR_S)
    await move.old.redis.set("broken", b"\x85\xa11nonsense")
    await move.old.redis.zadd("dq_bucket_1", {"broken": 1})
    await move.old.redis.rpush("dq_queue_t", "broken")
    await move.old.push("t", "good", HOUR_S)
    it = await move.run()
    assert (it.set_aside, it.imported.total()) == (2, 1)
    assert await move.set_aside() == {
        "comma": "topic: has a comma, so nobody could ever pop it",
        "broken": "not a packed job",
    }
    kept: Any = await move.old.redis.hget("dq_import:aside", "broken")
    assert kept.endswith(b"\n\x85\xa11nonsense")
    assert await move.left() == set()


@pytest.mark.parametrize("when_full", [None, WhenFull.DROP_OLDEST])
async def test_jobs_that_a_full_topic_has_no_room_for_are_left_and_those_of_others_arrive(
    move: Move, when_full: WhenFull | None
) -> None:
    limit = {"max_jobs": 3, "when_full": when_full}
    await set_limit(move.new.store.bucket(0), "full", limit, declared=False)
    ids = [
        "dq_queue_full",
        *(f"full-{n}" for n in range(4)),
    ]  # the first is where their list would be
    for job_id in ids:
        await move.old.push("full", job_id, HOUR_S)
    await move.old.push("other", "other", HOUR_S)
    it = await move.run()
    room = 0 if when_full else 3
    arrived = await move.arrived(*ids, "other")
    assert sorted({state for state, _ in arrived.values()}) == ["delayed"]
    assert "other" in arrived
    assert (len(arrived), it.left) == (room + 1, {"full": 5 - room})
    assert max(due_s for _, due_s in arrived.values()) < time.time() + 2 * HOUR_S, "none is staged"
    assert await move.old.redis.exists(*ids) == 5 - room
    assert not (await move.original().moving()).staged, "or no other store could be imported into"

    await set_limit(move.new.store.bucket(0), "full", {"max_jobs": None}, declared=False)
    it = await move.run()
    assert (it.imported.total(), it.left.total()) == (5 - room, 0)
    assert len(await move.arrived(*ids)) == 5
    assert await move.left() == set()


@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize("when_full", [None, WhenFull.DROP_OLDEST])
async def test_ready_jobs_of_a_full_topic_are_left_and_counted_once(
    move: Move, monkeypatch: pytest.MonkeyPatch, when_full: WhenFull | None, *, runs: bool
) -> None:
    """They are in no bucket, as are those that a crash of the old server has lost."""
    if runs:
        monkeypatch.setattr(source, "DEAD_S", 2 * PATIENCE_S)
    limit = {"max_jobs": 1, "when_full": when_full}
    await set_limit(move.new.store.bucket(0), "full", limit, declared=False)
    await move.new.push(job("there", topic="full"))
    for number in range(3):
        await move.old.make_ready("full", f"ready-{number}")
    it = await move.run()
    assert (it.left, it.imported.total()) == ({"full": 3}, 0)


async def test_nothing_stays_staged_if_a_job_of_the_batch_cannot_be(move: Move) -> None:
    due_s = int(time.time()) + HOUR_S
    for topic, job_id in (("t", "good"), ("broken", "bad")):
        await move.old.store(topic, job_id, due_s)
        await move.old.redis.zadd(move.old.bucket(1), {job_id: due_s})
    key = move.new.keys.named("delay:broken")
    await move.new.redis.set(key, "another type")
    with pytest.raises(Unavailable):
        await move.run()
    assert await move.arrived("good", "bad") == {}
    await move.new.redis.delete(key)
    assert (await move.run()).imported.total() == 2


async def test_a_job_that_was_pushed_to_the_new_server_since_is_not_overwritten(move: Move) -> None:
    await move.old.push("t", "a", HOUR_S, body="old")
    await move.new.push(job("a", body="new"))
    it = await move.run()
    assert (await move.view("a")).body == b"new"
    assert it.set_aside == 1
    assert await move.set_aside() == {"a": "the destination has another job of this id"}


async def test_entries_that_earlier_pushes_left_do_not_repeat_a_job(move: Move) -> None:
    await move.old.push("t", "a", HOUR_S)
    await move.old.push("t", "a", 2 * HOUR_S)
    await move.old.redis.rpush("dq_queue_t", "a", "a")
    it = await move.run()
    assert it.imported == {Place.DELAYED: 1}
    assert (await move.arrived("a"))["a"][1] == pytest.approx(time.time() + 2 * HOUR_S, abs=NEAR_S)
    assert await move.left() == set()


async def test_a_job_that_a_consumer_holds_is_his_until_he_finishes_it(move: Move) -> None:
    await move.old.push("t", "delayed", HOUR_S)
    await move.old.store("t", "lost in a crash", int(time.time()) + HOUR_S)
    await move.old.hand_out("t", "held")
    async with running(move):
        it = move.importer()
        importing = asyncio.create_task(it.run())
        await until(lambda: it.imported == {Place.DELAYED: 2} and bool(it.waiting))
        assert not importing.done()
        await move.old.finish("held")
        await asyncio.wait_for(importing, PATIENCE_S)
    assert it.imported == {Place.DELAYED: 2}
    assert await move.arrived("held") == {}


async def test_a_job_whose_consumer_never_finishes_comes_over_after_its_ttr(move: Move) -> None:
    await move.old.hand_out("t", "held", ttr_s=1)
    async with running(move):
        it = await move.run()
    assert it.imported == {Place.READY: 1}


async def test_a_job_that_a_crash_has_lost_is_its_consumers_until_its_ttr_has_passed(
    move: Move,
) -> None:
    await move.old.store("t", "lost", int(time.time()) - 5, ttr_s=HOUR_S)
    async with running(move):
        it = move.importer()
        importing = asyncio.create_task(it.run())
        await until(lambda: it.waiting == {Place.LOST: 1})
        await move.old.finish("lost")
        await asyncio.wait_for(importing, PATIENCE_S)
    assert not it.imported


async def test_a_job_that_becomes_ready_between_two_looks_is_not_left_behind(
    move: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old timer moves it after its ready list was read and before its bucket is."""
    read = Original.in_bucket

    async def tick_first(original: Original, bucket: str, offset: int) -> list[bytes]:
        await move.old.tick_all(lambda _: "t")
        return await read(original, bucket, offset)

    monkeypatch.setattr(source, "DEAD_S", PATIENCE_S)
    monkeypatch.setattr(Original, "in_bucket", tick_first)
    await move.old.hand_out("t", "held", ttr_s=1)
    it = await move.run()
    assert it.imported == {Place.READY: 1}


@in_every_setup
async def test_a_job_is_delivered_once_while_the_old_server_works_on(move: Move) -> None:
    """Its timer moves jobs, its consumers pop and finish them, at the same time as the import takes them."""
    ids = [f"job-{n}" for n in range(300)]
    for n, job_id in enumerate(ids):
        await move.old.push("t", job_id, [0, 1, HOUR_S][n % 3], ttr_s=HOUR_S)
    async with running(move, consumers=3):
        it = await move.run()
    assert sorted([*move.old.popped, *await move.arrived(*ids)]) == sorted(ids)
    assert it.imported[Place.READY] > 0
    assert move.old.popped


async def test_a_job_deleted_at_the_old_server_and_then_at_the_new_one_is_gone(
    move: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever step of an import the two deletes come at."""
    for verb in ("look", "claim", "take"):
        await move.old.push("t", "a", HOUR_S)

        async def delete() -> None:
            await move.old.finish("a")
            await move.new.delete("a")

        with monkeypatch.context() as patch:
            patch.setattr(Original, verb, after(delete, getattr(Original, verb)))
            await move.run()
        assert await move.arrived("a") == {}, verb


def after(event: Callable[[], Awaitable[Any]], step: Any) -> Callable[..., Any]:
    """The step of an import, the first time after something else has happened."""
    happened = False

    async def do_step(self: Any, *args: Any) -> Any:
        nonlocal happened
        if args and not happened:
            happened = True
            await event()
        return await step(self, *args)

    return do_step


async def test_a_job_that_is_pushed_anew_while_it_is_moved_comes_over_as_the_new_one(
    move: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def push() -> None:
        await move.old.push("t", "a", 2 * HOUR_S, body="new")

    await move.old.make_ready("t", "a", body="old")
    monkeypatch.setattr(Original, "take", after(push, Original.take))
    await move.run()
    assert (await move.view("a")).body == b"new"
    assert (await move.arrived("a"))["a"][1] == pytest.approx(time.time() + 2 * HOUR_S, abs=NEAR_S)


async def test_a_job_that_changes_its_place_while_it_is_moved_is_looked_at_again(
    move: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = int(time.time())

    async def finish_the_pop() -> None:
        await move.old.schedule("a", now + 300)

    await move.old.store("t", "a", now - 5, ttr_s=600)
    monkeypatch.setattr(Original, "take", after(finish_the_pop, Original.take))
    await move.run()
    assert await move.arrived("a") == {"a": ("delayed", now + 300)}


async def test_a_job_that_is_pushed_to_the_new_server_while_it_is_moved_is_not_overwritten(
    move: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def push() -> None:
        await move.new.push(job("a", body="new", due_ms=5))

    await move.old.push("t", "a", HOUR_S, body="old")
    monkeypatch.setattr(Original, "take", after(push, Original.take))
    await move.run()
    view = await move.view("a")
    assert (view.body, view.due_ms) == (b"new", 5)


@pytest.mark.parametrize("is_finished", [False, True])
@in_every_setup
async def test_a_job_that_is_reserved_by_its_id_while_it_is_moved_goes_back_to_its_due_time(
    move: Move, monkeypatch: pytest.MonkeyPatch, *, is_finished: bool
) -> None:
    """Unless it is finished at the old server meanwhile: then it is gone here, too."""
    held: list[Reserved] = []

    async def reserve() -> None:
        for one in await move.new.store.all_of(RESERVE, [Claim("a", "nonce")]):
            assert one.job
            held.append(one.job)
        if is_finished:
            await move.old.finish("a")

    await move.old.push("t", "a", HOUR_S)
    monkeypatch.setattr(Original, "take", after(reserve, Original.take))
    await move.run()
    await move.new.requeue(*held)
    arrived = await move.arrived("a")
    assert ("a" in arrived) != is_finished
    for state, due_s in arrived.values():
        assert state == "delayed"
        assert due_s == pytest.approx(time.time() + HOUR_S, abs=NEAR_S)


async def test_jobs_to_which_the_store_refuses_their_time_get_it_by_the_next_import(
    move: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    delayed, kept = move.new.key("delay:t"), move.new.key("kept")

    async def spoil() -> None:
        await move.new.redis.rename(delayed, kept)
        await move.new.spoil("delay:t")

    await move.old.push("t", "a", HOUR_S)
    monkeypatch.setattr(Original, "take", after(spoil, Original.take))
    with pytest.raises(Unavailable):
        await move.run()
    await move.new.redis.rename(kept, delayed)
    await move.run()
    assert (await move.view("a")).due_ms < STAGED_DUE_MS


class Killed(Exception):
    """Stands in for kill -9."""


STEPS = [
    (owner, name, when, times)
    for owner, name in (
        (Original, "claim"),
        (Importer, "_stage"),
        (Original, "take"),
        (Importer, "_settle"),
    )
    for when in ("before", "after")
    for times in (1, 2)
]


@pytest.mark.parametrize(
    ("owner", "name", "when", "times"), STEPS, ids=lambda part: getattr(part, "__name__", str(part))
)
async def test_an_import_that_is_killed_at_any_step_is_completed_by_the_next(
    move: Move, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, when: str, times: int
) -> None:
    monkeypatch.setattr("delayqueue.engine.importer.PAGE", 2)
    monkeypatch.setattr(source, "PAGE", 2)
    ids = [f"job-{n}" for n in range(5)]
    for job_id in ids:
        await move.old.push("t", job_id, HOUR_S)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, dying(getattr(owner, name), when, times))
        with pytest.raises(Killed):
            await move.run()
    popped = await bring_to_an_end(move, ids)
    await move.run()
    assert sorted({*popped, *await move.arrived(*ids)}) == ids
    arrived = await move.arrived(*ids)
    assert not {*popped} & arrived.keys()
    assert all(due_s < time.time() + 2 * HOUR_S for _, due_s in arrived.values())  # none is staged
    assert await move.set_aside() == {}
    assert await move.left() == set()


def dying(step: Any, when: str, times: int) -> Callable[..., Any]:
    """The step, which kills the import the n-th time that it has something to do."""
    calls = 0

    async def die(self: Any, *args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += bool(args)
        if calls == times and when == "before":
            raise Killed
        result = await step(self, *args, **options)
        if calls == times:
            raise Killed
        return result

    return die


async def bring_to_an_end(move: Move, ids: list[str]) -> list[str]:
    """Deliver and finish what the killed import has moved: the next one must not move it again."""
    done = []
    for job_id, (_, due_s) in (await move.arrived(*ids)).items():
        if due_s < time.time() + 2 * HOUR_S:  # not one that is staged
            await move.new.finish(job_id)
            done.append(job_id)
    return done


async def test_only_one_import_works_at_a_time(move: Move, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "LOCK_WAIT_S", 0.3)
    await move.old.hand_out("t", "held")
    async with running(move):
        first = asyncio.create_task(move.run())
        await until_async(lambda: locked(move))
        with pytest.raises(AnotherImport):
            await move.run()
        monkeypatch.setattr(source, "LOCK_WAIT_S", PATIENCE_S)
        second = asyncio.create_task(move.run())
        await move.old.finish("held")
        await first
        await second


async def test_looking_at_jobs_that_others_hold_keeps_the_lock(move: Move) -> None:
    original = move.original()
    async with original.locked():
        await move.old.redis.pexpire("dq_import:lock", 1000)
        await original.look([b"held"])
        assert await move.old.redis.pttl("dq_import:lock") > source.LOCK_MS / 2


async def locked(move: Move) -> bool:
    return bool(await move.old.redis.exists("dq_import:lock"))


async def test_an_import_that_slept_through_its_lock_takes_nothing_more(
    move: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    await move.old.push("t", "a", HOUR_S)
    take = Original.take

    async def take_late(*args: Any) -> Any:
        await move.old.redis.set("dq_import:lock", "another")
        return await take(*args)

    with monkeypatch.context() as patch:
        patch.setattr(Original, "take", take_late)
        with pytest.raises(AnotherImport):
            await move.run()
    assert await move.arrived("a") == {}
    assert await move.old.redis.get("dq_import:lock") == b"another"
    await move.old.redis.delete("dq_import:lock")
    assert (await move.run()).imported.total() == 1


async def test_an_import_into_another_store_does_not_complete_one_that_was_killed(
    move: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    await move.old.push("t", "a", HOUR_S)
    with monkeypatch.context() as patch:
        patch.setattr(Importer, "_settle", dying(Importer._settle, "before", 1))
        with pytest.raises(Killed):
            await move.run()
    with pytest.raises(StartupError, match="finish that import first"):
        await move.importer("elsewhere").run()
    assert (await move.run()).imported.total() == 0
    assert (await move.arrived("a"))["a"][0] == "delayed"
