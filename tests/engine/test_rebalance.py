"""Changing the number of buckets: what moves, who is refused meanwhile, and each point at which it can be killed."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pytest
from redis.exceptions import TimeoutError as RedisTimeoutError

from delayqueue.config.config import Config
from delayqueue.config.startup import StartupError
from delayqueue.domain.access import EVERYWHERE
from delayqueue.domain.call import Call
from delayqueue.domain.job import CALLS, Job, PolledTopic, Reserved
from delayqueue.domain.limit import Limit
from delayqueue.domain.schedule import Schedule
from delayqueue.engine.jobs import Jobs
from delayqueue.engine.queue import DelayQueue
from delayqueue.engine.rebalance import Rebalance
from delayqueue.errors import Code, Unavailable
from delayqueue.store.bucket import Bucket
from delayqueue.store.buckets import Layout
from delayqueue.store.call import ScriptCall
from delayqueue.store.change import AnotherChange
from delayqueue.store.durability import Durability
from delayqueue.store.health import AILMENTS_BY_CLASS
from delayqueue.store.layout import decoded, parse
from delayqueue.store.servers import Servers
from delayqueue.store.store import Store
from delayqueue.store.topics import limits_in
from delayqueue.store.types import Change, Demand, Listing
from delayqueue.store.verbs import BURY, FINISH, PUSH, Burial, Ending
from tests.clusters import ask
from tests.engine.moving import (
    AFTER,
    BEFORE,
    EVER,
    LAYOUT,
    A,
    B,
    Installation,
    all_jobs,
    before_call,
    in_any_state,
    pop_all,
    source,
    target,
)
from tests.processes import Processes
from tests.store.between import Send, before_send, intercept
from tests.store.bucket import HOUR_MS, STATES, job
from tests.store.conftest import connect
from tests.waiting import until

NAMES: Final = [f"job-{n}" for n in range(300)]
OLDER: Final = {"version": "0.1.0", "started": 0, "pushed": 0, "delivered": 0, "finished": 0}


class Killed(Exception):
    """The process that changes the number of buckets is no more."""


async def dying() -> None:
    raise Killed


async def with_jobs(ours: Installation, names: Sequence[str] = NAMES) -> Jobs:
    """A server and delayed jobs."""
    queue = all_jobs(ours.server())
    for at in range(0, len(names), 500):
        await queue.push_many([job(name, delay_ms=HOUR_MS) for name in names[at : at + 500]])
    return queue


async def put_in(store: Store, state: str, job_id: str, **options: Any) -> None:
    """Push a job and bring it into that state, or `ended`."""
    delay_ms = HOUR_MS if state == "delayed" else 0
    retain_ms = HOUR_MS if state == "ended" else 0
    await store.run(
        PUSH, [job(job_id, delay_ms=delay_ms, retain_ms=retain_ms, **options)], EVERYWHERE
    )
    if state == "reserved":
        await store.bucket(store.buckets.of(job_id)).pop([Demand(("t",), 1)])
    if state == "buried":
        await store.run(BURY, [Burial(job_id, None, "why")], EVERYWHERE)
    if state == "ended":
        await store.run(FINISH, [Ending(job_id, None, "done")], EVERYWHERE)


async def look(queue: Jobs, job_id: str) -> Any:
    [view] = await queue.get([job_id])
    return view


# what moves


@pytest.mark.parametrize("state", [*STATES, "ended"])
async def test_a_job_moves_with_all_that_is_known_of_it(ours: Installation, state: str) -> None:
    server = ours.server()
    options = {"tags": ("order",), "retry_ms": (5, 6), "priority": 7}
    await put_in(server, state, A, expire_ms=2 * HOUR_MS, **options)
    before = await look(all_jobs(server), A)
    assert (await ours.rebalance()).moved == 1
    queue = all_jobs(ours.server())
    assert await look(queue, A) == before
    tagged = await queue.listings.list_jobs(Listing("", "order", "", EVER), 9, "")
    assert [view.id for view in tagged[0]] == [A]


async def test_jobs_with_a_call_move_and_are_found(ours: Installation) -> None:
    queue = all_jobs(ours.server())
    await queue.push_many([job(name, call=Call(url="http://1.1.1.1/")) for name in NAMES])
    await ours.rebalance(7)
    assert sorted(await pop_all(all_jobs(ours.server()), "")) == sorted(NAMES)


async def test_who_holds_a_job_is_known_afterwards(ours: Installation) -> None:
    await put_in(ours.server(), "reserved", A)
    await ours.redis.hset("{dq_bucket_1}:holders:0123", A, "0123-1 ann")
    await ours.rebalance()
    key = "{dq_bucket_3}:holders:0123"
    assert await ours.redis.hget(key, A) == b"0123-1 ann"
    assert await ours.redis.pttl(key) > HOUR_MS


@pytest.mark.parametrize("size", [1, 3, 5, 64])
async def test_ready_jobs_keep_their_order_within_a_bucket(ours: Installation, size: int) -> None:
    names = [f"job-{n}" for n in range(2000)]
    queue = all_jobs(ours.server())
    for at in range(0, len(names), 500):
        await queue.push_many([job(name) for name in names[at : at + 500]])
    gone = names[3::7]
    assert set(await queue.delete(in_any_state(gone))) == {
        Code.OK
    }  # their ids remain in the lists, as ghosts
    left = sorted(set(names) - set(gone), key=names.index)
    await ours.rebalance(size)
    store = ours.server()
    for bucket in range(size):
        popped = list[str]()
        while jobs := (await store.bucket(bucket).pop([Demand(("t",), 2000)])).jobs[0]:
            popped += [each.id for each in jobs]
        mine = [name for name in left if store.buckets.of(name) == bucket]
        former = [[name for name in mine if source(name) == at] for at in range(BEFORE)]
        assert sorted(popped) == sorted(mine)
        for ordered in former:
            assert [name for name in popped if name in ordered] == ordered


async def test_given_the_number_that_there_is_it_looks_everywhere_for_strays(
    ours: Installation,
) -> None:
    """Also in a bucket that holds no more jobs."""
    stray = next(name for name in NAMES if source(name) == 1)
    await with_jobs(ours, [stray])
    fields: Any = {"bucket_size": 1, "former_bucket_sizes": "2", "generation": 1}
    await ours.redis.hset(LAYOUT, mapping=fields)
    work = Rebalance(ours.server(), 1)
    await work.run()
    assert work.moved == 1
    assert await ours.redis.hkeys("{dq_bucket_1}:job") == [stray.encode()]


async def test_what_a_person_has_to_look_at_moves_as_it_is(ours: Installation) -> None:
    await ours.redis.hset("{dq_bucket_1}:job", A, "no record")
    await ours.redis.zadd("{dq_bucket_1}:broken", {A: 5})
    await ours.rebalance()
    assert await ours.redis.hget("{dq_bucket_3}:job", A) == b"no record"
    assert await ours.redis.zscore("{dq_bucket_3}:broken", A) == 5


async def test_a_key_of_another_type_stays_and_hinders_nobody(ours: Installation) -> None:
    await with_jobs(ours)
    await ours.redis.set("{dq_bucket_1}:tag:x", "not a set")
    work = ours.change()
    await work.run()
    assert work.moved == sum(source(name) != target(name) for name in NAMES)
    assert await ours.redis.get("{dq_bucket_1}:tag:x") == b"not a set"


# limits and pauses


async def test_pauses_and_limits_hold_in_the_new_buckets(ours: Installation) -> None:
    queue = all_jobs(ours.server())
    await queue.topics.pause("t", 0)
    await queue.topics.limit("u", {"concurrency": 9})
    await queue.push_many([job(f"{topic}{n}", topic=topic) for n in range(90) for topic in "tu"])
    await ours.rebalance()
    store = ours.server()
    assert await pop_all(all_jobs(store), "t") == []
    assert len(await pop_all(all_jobs(store), "u")) == 9
    for bucket in range(AFTER):
        assert (await limits_in(store.bucket(bucket)))["u"] == Limit(concurrency=9)


async def test_a_pause_that_was_lifted_does_not_come_back(ours: Installation) -> None:
    await all_jobs(ours.server()).topics.pause("t", 0)
    await ours.rebalance(1)
    await all_jobs(ours.server()).topics.pause("t", None)
    await ours.rebalance(BEFORE)
    queue = all_jobs(ours.server())
    await queue.push_many([job(name) for name in NAMES])
    assert len(await pop_all(queue, "t")) == len(NAMES)


async def test_the_whole_of_a_limit_is_there_when_fewer_buckets_are(ours: Installation) -> None:
    queue = all_jobs(ours.server())
    await queue.topics.limit("t", {"concurrency": 16})
    await queue.push_many([job(name) for name in NAMES])
    await ours.rebalance(1)
    assert len(await pop_all(all_jobs(ours.server()), "t")) == 16


async def test_a_limit_that_is_too_small_for_so_many_buckets_is_named(ours: Installation) -> None:
    await all_jobs(ours.server()).topics.limit("u", {"concurrency": 2})
    with pytest.raises(StartupError, match="'u': concurrency: must be at least "):
        await ours.change().run()
    await all_jobs(ours.server()).push(job(A))  # nothing has begun


async def test_settings_that_cannot_be_read_count_as_none(ours: Installation) -> None:
    await ours.redis.hset("{dq_bucket_1}:topics", "t", "no JSON")
    await ours.change().run()


# who is refused meanwhile


async def test_no_server_does_anything_between_its_first_step_and_its_last(
    ours: Installation,
) -> None:
    queue = await with_jobs(ours, [A])
    work = ours.change()

    async def try_all() -> None:
        for attempt in (
            queue.push(job(B)),
            queue.get([A]),
            queue.delete(in_any_state([A])),
            queue.kick([A]),
        ):
            with pytest.raises(Unavailable, match="the buckets are being changed"):
                await attempt

    before_call(work, "_move_all", 1, try_all)
    await work.run()
    found = await all_jobs(work._store).get([A, B])
    assert [view and view.state for view in found] == ["delayed", None]


async def test_a_server_that_slept_through_it_is_refused(ours: Installation) -> None:
    asleep = ours.server()
    await with_jobs(ours, [A])
    await ours.rebalance()
    with pytest.raises(Unavailable):
        await all_jobs(asleep).push(job(A))
    assert asleep.closed
    await ours.check()


async def test_what_waited_by_the_former_layout_fails(ours: Installation) -> None:
    """Its calls were all under way when the process learnt of another layout."""
    store = ours.server()
    requests = [store.run(PUSH, [job(A)], EVERYWHERE)]
    store.buckets.adopt(store.buckets.layout)
    with pytest.raises(Unavailable):
        await requests[0]
    assert await look(all_jobs(store), A) is None


async def test_a_verb_that_meets_another_layout_on_its_way_says_how_far_it_came(
    ours: Installation,
) -> None:
    store = ours.server()
    queue = all_jobs(store)
    await queue.push_many([job(name, tags=("x",)) for name in NAMES])
    before_send(store, 2, lambda: _adopt(store), "cancel")
    with pytest.raises(Unavailable, match="jobs were processed, try again"):
        await queue.topics.cancel("x", None)


async def _adopt(store: Store) -> None:
    store.buckets.adopt(Layout(BEFORE))


@pytest.mark.parametrize("heard_s_ago", [1, 20, -20])  # the last: the clock was put back
async def test_servers_of_an_older_version_are_named_while_they_are_heard(
    ours: Installation, heard_s_ago: int
) -> None:
    seconds, _ = await ours.redis.time()
    told = f"{(seconds - heard_s_ago) * 1000} {json.dumps(OLDER)}"
    await ours.redis.hset("{dq_bucket_1}:servers", "shop-1:9277", told)
    await with_jobs(ours)
    if abs(heard_s_ago) > 15:
        await ours.rebalance()
        return
    with pytest.raises(StartupError, match=r"servers of an older version .*: shop-1:9277"):
        await ours.change().run()
    await all_jobs(ours.server()).push(job(A))  # nothing has begun


async def test_servers_of_this_version_need_not_stop(ours: Installation) -> None:
    heartbeat = DelayQueue(ours.server(), name="shop-1").heartbeat
    beat = asyncio.create_task(heartbeat.run())
    await until(lambda: heartbeat.noted_at is not None)
    await ours.rebalance()
    beat.cancel()


async def test_a_move_that_an_older_version_began_is_ended_by_it(ours: Installation) -> None:
    fields: Any = {"bucket_size": 3, "former_bucket_sizes": "2", "generation": 1, "moving": "on"}
    await ours.redis.hset(LAYOUT, mapping=fields)
    with pytest.raises(StartupError, match="--buckets 3` to the end first with the version that"):
        await ours.change().run()
    assert parse(decoded(await ours.redis.hgetall(LAYOUT)), 0).layout.generation == 1


# several who change it, and death


async def test_a_change_to_another_number_has_to_end_first(ours: Installation) -> None:
    work = ours.change()
    before_call(work, "_move_all", 1, dying)
    with pytest.raises(Killed):
        await work.run()
    with pytest.raises(StartupError, match="--buckets 3` to the end first"):
        await ours.change(5).run()
    await ours.rebalance(AFTER)


async def test_of_two_at_once_the_one_that_began_last_goes_on(ours: Installation) -> None:
    await with_jobs(ours)
    first, second = ours.change(), asyncio.Event()

    async def overtake() -> None:
        await ours.rebalance(AFTER)
        second.set()

    before_call(first, "_page", 3, overtake)
    with pytest.raises(AnotherChange):
        await first.run()
    await second.wait()
    await ours.check()
    assert all(await all_jobs(ours.server()).get(NAMES))


async def test_one_that_was_held_up_ends_no_later_change(ours: Installation) -> None:
    """It is about to end when another one does, and a third one begins."""
    await with_jobs(ours)
    slow = ours.change()

    async def overtake() -> None:
        await ours.rebalance(AFTER)
        later = ours.change(5)
        before_call(later, "_move_all", 1, dying)
        with pytest.raises(Killed):
            await later.run()

    before_call(slow._change, "end", 1, overtake)
    with pytest.raises(AnotherChange):
        await slow.run()
    stored = parse(decoded(await ours.redis.hgetall(LAYOUT)), 0)
    assert stored.change is not None
    assert stored.change.size == 5


OF_CHANGE: Final = ("begin", "start", "end")
STEPS: Final = (*OF_CHANGE, "export", "import", "confirm", "split_limits")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS)
async def test_killed_at_any_step_it_goes_on_when_it_is_run_again(
    ours: Installation, step: str, when: str
) -> None:
    queue = await with_jobs(ours)
    ready = [f"ready-{n}" for n in range(500)]
    await queue.push_many([job(name, tags=("x",), topic="r") for name in ready])
    await queue.topics.limit("r", {"rate": 10_000})
    for number in (1, 2, 5):
        work = ours.change()
        if step in OF_CHANGE:
            _die(work._change, step, when, number)
        else:
            _die_at_script(work._store, step, when, number)
        try:
            await work.run()
        except Killed:
            continue
        assert number > 1
        break  # it has no step of that number
    await ours.rebalance(AFTER)
    queue = all_jobs(ours.server())
    assert all(await queue.get(NAMES))
    popped = await pop_all(queue, "r")
    assert sorted(popped) == sorted(ready)


def _die(place: Any, name: str, when: str, number: int) -> None:
    """Be killed before or after the call of that number."""
    method, calls = getattr(place, name), 0

    async def call(*args: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == number and when == "before":
            raise Killed
        answer = await method(*args, **named)
        if calls == number:
            raise Killed
        return answer

    setattr(place, name, call)


def _die_at_script(store: Store, name: str, when: str, number: int) -> None:
    """Be killed before or after the call of a script of that number."""
    store.buckets.know(AFTER)
    calls = 0

    def send(_: Bucket, call: ScriptCall, sends: Send) -> None:
        nonlocal calls
        calls += call.function.head.name == name
        if call.function.head.name != name or calls != number:
            sends(call)
        elif when == "before":
            call.end(Killed())
        else:
            ends = call.end
            call.end = lambda _: ends(Killed())
            sends(call)

    intercept(store, send)


async def test_a_ready_job_that_an_import_brought_twice_stays_once(ours: Installation) -> None:
    """As a change that is killed after it has put a page there, and before it has dropped it here, does."""
    queue = await with_jobs(ours, ())
    await queue.push_many([job(name) for name in NAMES])
    lists = [keys.queue_name % "t" for keys in ours.server().buckets.keys]
    for ready in lists:
        ids: Any = await ours.redis.lrange(ready, 0, -1)
        await ours.redis.rpush(ready, ids[0])
    await ours.rebalance(1)  # its list is longer than a page of the ghosts that are dropped
    assert sorted(await pop_all(all_jobs(ours.server()), "t")) == sorted(NAMES)


@pytest.mark.parametrize("which", ["redis", "valkey"])
async def test_a_store_that_starts_again_meanwhile_keeps_no_job_back(
    processes: Processes, which: str
) -> None:
    """A new process has other cursors."""
    store = getattr(processes, which)("--appendonly", "yes")
    names = [f"job-{n}" for n in range(4000)]
    async with connect(store, 0) as redis:
        ours = Installation(redis, "zset")
        await with_jobs(ours, names)
        work = ours.change(8)

        async def restart() -> None:
            await asyncio.to_thread(store.stop)
            await asyncio.to_thread(store.start)

        before_call(work, "_page", 3, restart)
        await work.run()
        assert all(await all_jobs(work._store).get(names))


async def test_a_fence_beyond_the_layout_is_passed(ours: Installation) -> None:
    """The master of bucket 1 has lost its last writes."""
    await with_jobs(ours, [A])
    await ours.redis.zadd("{dq_bucket_1}:fence", {"generation": 7})
    with pytest.raises(Unavailable):
        await all_jobs(ours.server()).push(job(A))
    await ours.rebalance()
    assert ours.layout.generation == 8
    assert await look(all_jobs(ours.server()), A) is not None


@pytest.mark.parametrize("step", ["_page", "_settings"])  # while jobs move, and limits
async def test_a_fence_that_a_failover_loses_meanwhile_is_raised_again(
    processes: Processes, step: str
) -> None:
    """Else a server that slept through the change would work in that bucket by the former layout."""
    store = processes.redis("--appendonly", "yes")
    fence = "{dq_bucket_1}:fence"
    async with connect(store, 0) as redis:
        ours = Installation(redis, "zset")
        await with_jobs(ours)
        work = ours.change()

        async def fail_over() -> None:
            await asyncio.to_thread(store.stop)
            await asyncio.to_thread(store.start)
            await asyncio.to_thread(ask, store, "ZADD", fence, 0, "generation")

        before_call(work, step, 3, fail_over)
        await work.run()
        assert await redis.zscore(fence, "generation") == work._store.buckets.layout.generation


async def test_it_goes_beyond_the_fence_of_a_bucket_that_goes(ours: Installation) -> None:
    await ours.redis.zadd("{dq_bucket_2}:fence", {"generation": 7})
    await ours.rebalance(1)
    assert ours.layout.generation == 8


async def test_a_store_that_fails_for_good_ends_it(
    ours: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delayqueue.engine.rebalance.PATIENCE_S", 0.3)
    monkeypatch.setattr("delayqueue.engine.rebalance.RETRY_S", 0.1)
    await with_jobs(ours, [A])
    await ours.redis.set("{dq_bucket_3}:job", "of another type")
    with pytest.raises(Unavailable):
        await ours.change().run()
    assert await ours.redis.hexists("{dq_bucket_1}:job", A)
    await ours.redis.delete("{dq_bucket_3}:job")
    await ours.rebalance()


async def test_its_last_step_can_be_repeated(ours: Installation) -> None:
    """As if its answer were lost."""
    work = ours.change()
    before_call(work._change, "end", 1, work._change.end)
    await work.run()


async def test_there_is_a_timer_for_each_bucket_that_ever_was(ours: Installation) -> None:
    store = ours.server()
    queue = DelayQueue(store)
    store.buckets.adopt(Layout(4, 2, (4, 2)))
    assert queue.store.buckets.count == 4
    store.notify(3, Change([], 5))


# what is in its way while servers still work: before its first step, and between its look and that step


async def goes_on(ours: Installation) -> None:
    """Servers work with the former number of buckets, in which every job is."""
    stored = parse(decoded(await ours.redis.hgetall(LAYOUT)), BEFORE)
    assert stored.change is None
    ours.layout = stored.layout
    await all_jobs(ours.server()).push(job("goes-on"))
    await ours.check()


async def limit_to_two(ours: Installation) -> None:
    await all_jobs(ours.server()).topics.limit("u", {"concurrency": 2})


async def push_torn(ours: Installation) -> None:
    await all_jobs(ours.server()).push(job("torn", texts={"group": "g"}))


IN_ITS_WAY: Final = pytest.mark.parametrize(
    ("comes", "says"),
    [(limit_to_two, "'u': concurrency: must be at least 3"), (push_torn, "in braces, .*: 1\\. ")],
)


@IN_ITS_WAY
async def test_what_comes_before_its_first_step_is_seen_and_nothing_has_changed(
    ours: Installation, comes: Callable[[Installation], Awaitable[None]], says: str
) -> None:
    await ours.rebalance(1)
    former = ours.layout
    work = ours.change()
    before_call(work._change, "begin", 1, partial(comes, ours))
    with pytest.raises(StartupError, match=says):
        await work.run()
    assert not work.is_begun
    await goes_on(ours)
    assert ours.layout == replace(former, generation=former.generation + 1)


@IN_ITS_WAY
async def test_giving_up_can_be_repeated(
    ours: Installation, comes: Callable[[Installation], Awaitable[None]], says: str
) -> None:
    """As if the answer to it were lost."""
    await ours.rebalance(1)
    work = ours.change()
    before_call(work._change, "begin", 1, partial(comes, ours))
    before_call(work._change, "give_up", 1, work._change.give_up)
    with pytest.raises(StartupError, match=says):
        await work.run()


@pytest.mark.parametrize("step", ["_check", "give_up"])
@pytest.mark.parametrize("when", ["before", "after"])
@IN_ITS_WAY
async def test_killed_before_it_has_moved_anything_it_gives_up_when_it_is_run_again(
    ours: Installation,
    comes: Callable[[Installation], Awaitable[None]],
    says: str,
    step: str,
    when: str,
) -> None:
    await ours.rebalance(1)
    work = ours.change()
    before_call(work._change, "begin", 1, partial(comes, ours))
    place: Any = work if step == "_check" else work._change
    _die(place, step, when, 2 if step == "_check" else 1)
    with pytest.raises((Killed, StartupError)):
        await work.run()
    with pytest.raises(StartupError, match=says):
        await ours.change().run()
    await goes_on(ours)


async def test_one_that_was_overtaken_gives_up_nothing(ours: Installation) -> None:
    await ours.rebalance(1)
    await with_jobs(ours)
    work = ours.change()
    before_call(work._change, "begin", 1, partial(push_torn, ours))

    async def overtake() -> None:
        await ours.redis.hdel("{dq_bucket_1}:priorities", "torn")  # nothing is in its way any more
        later = ours.change()
        before_call(later, "_page", 3, dying)
        with pytest.raises(Killed):
            await later.run()

    before_call(work._change, "give_up", 1, overtake)
    with pytest.raises(AnotherChange):
        await work.run()
    stored = parse(decoded(await ours.redis.hgetall(LAYOUT)), 0)
    assert stored.change is not None


async def test_once_it_has_moved_something_it_is_not_given_up(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those jobs would be in buckets that servers do not know."""
    monkeypatch.setattr("delayqueue.engine.rebalance.PATIENCE_S", 0.3)
    monkeypatch.setattr("delayqueue.engine.rebalance.RETRY_S", 0.1)
    async with connect(processes.redis("--maxmemory-policy", "noeviction"), 0) as redis:
        ours = Installation(redis, "zset")
        await with_jobs(ours)
        work = ours.change()
        _die_at_script(work._store, "import", "after", 1)
        with pytest.raises(Killed):
            await work.run()
        await redis.config_set("maxmemory", 1)
        again = ours.change()
        with pytest.raises(Unavailable, match="its memory is full"):
            await again.run()
        assert again.is_begun
        await redis.config_set("maxmemory", 0)
        await ours.rebalance()
        assert all(await all_jobs(ours.server()).get(NAMES))


async def test_a_change_that_an_older_version_began_is_ended(ours: Installation) -> None:
    """It did not say whether it had moved anything."""
    await ours.rebalance(1)
    await push_torn(ours)
    await ours.redis.hset(LAYOUT, mapping={"changing": 3, "version": 2, "changer": 9})
    await ours.rebalance()


@pytest.mark.parametrize("step", ["is_under_way", "begin"])
async def test_a_store_that_is_full_is_not_stopped(processes: Processes, step: str) -> None:
    """Consumers can still make room."""
    async with connect(processes.redis("--maxmemory-policy", "noeviction"), 0) as redis:
        ours = Installation(redis, "zset")
        await with_jobs(ours, [A, B])
        work = ours.change()
        before_call(work._change, step, 1, partial(redis.config_set, "maxmemory", 1))
        with pytest.raises(
            StartupError, match=r"^the store of buckets 1, 2, 3: its memory is full"
        ):
            await work.run()
        ours.layout = parse(decoded(await redis.hgetall(LAYOUT)), BEFORE).layout
        assert await all_jobs(ours.server()).delete(in_any_state([A])) == [Code.OK]
        await redis.config_set("maxmemory", 0)
        await goes_on(ours)


async def test_a_store_whose_replicas_are_away_is_not_stopped(processes: Processes) -> None:
    async with connect(processes.redis("--appendonly", "yes"), 0) as redis:
        ours = Installation(redis, "zset")
        durability = Durability.of(Config(durability="replica"))
        store = Store(Servers.one(redis), ours.server().buckets, durability=durability)
        with pytest.raises(StartupError, match="too few replicas follow"):
            await Rebalance(store, AFTER).run()
        await goes_on(ours)


async def test_it_begins_only_if_all_masters_answer(ours: Installation) -> None:
    """Also one that holds no bucket: its process is asked for later."""
    work = ours.change()

    async def away() -> None:
        raise Unavailable.because(AILMENTS_BY_CLASS[RedisTimeoutError])

    before_call(work._entries, "processes", 1, away)
    with pytest.raises(StartupError, match=r"^the store is unavailable: it does not answer"):
        await work.run()
    await goes_on(ours)
    assert ours.layout.generation == 0


# groups: their jobs are in the bucket of what stands in the braces of their ids

GROUPS: Final = [f"customer-{n}" for n in range(12)]


def of_group(group: str, number: int, **options: Any) -> Job:
    return job(f"{{{group}}}{number}", texts={"group": group}, **options)


async def test_groups_stay_together_with_their_turns_and_what_is_in_hand(
    ours: Installation,
) -> None:
    """First with the present number: the layout did not know braces."""
    server = ours.server()
    await all_jobs(server).topics.limit("t", {"group_order": True})
    await server.run(PUSH, [of_group(each, 0) for each in GROUPS], EVERYWHERE)
    held = list[Reserved]()
    while some := await all_jobs(server).polls.pop(("t",), 1000, 0):  # one bucket or the other
        held += some
    assert len(held) == len(GROUPS)
    waits, *others = held
    await all_jobs(server).release(waits.id, waits.nonce, HOUR_MS, "")
    for size in (BEFORE, AFTER, 1, AFTER):
        await ours.rebalance(size)
        assert ours.layout.braces == (size > 1)
        queue = all_jobs(ours.server())
        await queue.push_many([of_group(each, size) for each in GROUPS])
        assert await pop_all(queue, "t") == []
    await queue.finish([Ending(each.id, each.nonce, "") for each in others])
    next_ones = await pop_all(queue, "t")
    assert len(next_ones) == len(GROUPS) - 1
    assert not any(each.startswith(waits.id[:-1]) for each in next_ones)


async def test_groups_that_would_be_torn_apart_are_counted_first(ours: Installation) -> None:
    await ours.rebalance(1)
    queue = all_jobs(ours.server())
    torn = [job(f"{n}", texts={"group": "g"}) for n in range(3)]
    await queue.push_many([*torn, of_group("g", 3), job("plain", priority=1)])
    with pytest.raises(StartupError, match=r"in braces, .*: 3\. "):
        await ours.rebalance()
    await queue.delete(in_any_state(each.id for each in torn))
    await ours.rebalance()
    assert sorted(await pop_all(all_jobs(ours.server()), "t")) == ["plain", "{g}3"]


async def test_a_group_that_no_bucket_can_be_named_for_counts_as_torn(ours: Installation) -> None:
    """Its ids begin with it in braces, and yet there is nothing in the braces."""
    await ours.rebalance(1)
    queue = all_jobs(ours.server())
    await queue.push(of_group("}a", 1))
    with pytest.raises(StartupError, match=r"in braces, .*: 1\. "):
        await ours.rebalance()
    await queue.delete(in_any_state(["{}a}1"]))
    await ours.rebalance()


async def test_schedules_whose_jobs_have_a_group_are_named_first(ours: Installation) -> None:
    """With several buckets their jobs would be in the bucket of the schedules, and not in that of their group."""
    await ours.rebalance(1)
    schedules = DelayQueue(ours.server()).schedules
    plain = Schedule(name="plain", topic="t", every_ms=HOUR_MS)
    grouped = replace(plain, name="grouped", group="g")
    for each in (plain, grouped, replace(grouped, name="asleep", paused=True)):
        await schedules.register(each, "fail")
    with pytest.raises(StartupError, match=r"^the schedules asleep, grouped push jobs of a group"):
        await ours.change().run()
    await schedules.remove("asleep")
    with pytest.raises(StartupError, match=r"^the schedules grouped push"):
        await ours.change().run()
    await schedules.remove("grouped")
    await ours.rebalance()
    assert [one.name for one in await DelayQueue(ours.server()).schedules.all()] == ["plain"]


async def test_a_group_keeps_its_order_over_workers_and_calls(ours: Installation) -> None:
    await ours.rebalance(BEFORE)
    queue = all_jobs(ours.server())
    await queue.topics.limit("t", {"group_order": True})
    call = Call(url="http://1.1.1.1/")
    jobs = [of_group(each, n, call=call if n % 2 else None) for each in GROUPS for n in range(3)]
    await queue.push_many(jobs)
    await ours.rebalance(AFTER)
    queue = all_jobs(ours.server())
    order: list[tuple[PolledTopic, PolledTopic]] = [("t", CALLS), (CALLS, "t"), ("t", CALLS)]
    for n, (topic, other) in enumerate(order):
        assert await pop_all(queue, other) == []
        ids = await pop_all(queue, topic)
        assert sorted(ids) == sorted(f"{{{each}}}{n}" for each in GROUPS)
        assert {*await queue.finish(in_any_state(ids))} == {Code.OK}
