"""The verbs run as functions if the store has them, else as scripts; lost ones are loaded again."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

import pytest
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from delayqueue.errors import Code, Unavailable
from delayqueue.store.buckets import Buckets, Layout
from delayqueue.store.call import remove_old_functions
from delayqueue.store.scripts import ZSET, Scripts, read
from delayqueue.store.servers import Servers
from delayqueue.store.types import NO_CHANGE, Demand
from tests.processes import LOOPBACK
from tests.store.bucket import WHEEL_SLOTS, Bucket, VerbStore, calls_of, job, with_functions
from tests.store.clients import Client

SPARE_LOCALS: Final = 16
KINDS: Final = [ZSET, Scripts("wheel", WHEEL_SLOTS)]

with_own_server = pytest.mark.parametrize("redis", ["own"], indirect=True)
each_kind = pytest.mark.parametrize("scripts", KINDS, ids=lambda scripts: scripts.scheduler)


async def libraries(redis: Redis) -> set[str]:
    return {library[1].decode() for library in await redis.function_list("delayqueue_*")}


def read_roomy(name: str) -> str:
    """The text of a script; the shared parts together, and each verb, have more local variables than they need."""
    more = "".join(f"local spare_{n}\n" for n in range(SPARE_LOCALS))
    is_part_of_another = name.startswith("_") and name != "_keys"
    return read(name) if is_part_of_another else more + read(name)


@each_kind
@with_functions
async def test_there_is_room_for_more_local_variables(redis: Redis, scripts: Scripts) -> None:
    """Lua allows 200 locals in a function, and the parts of a call together are one function."""
    roomy = replace(scripts, read=read_roomy)
    await redis.function_load(roomy.library.source)
    await redis.function_delete(roomy.library.name)
    for verb in roomy.verbs:
        assert await redis.script_load(roomy.script(verb).source), verb


@each_kind
@with_functions
async def test_only_what_a_verb_says_is_taken_for_reading(redis: Redis, scripts: Scripts) -> None:
    """The store refuses a verb that writes though its head says no-writes, so the flag is proof."""
    await redis.function_load(scripts.library.source, replace=True)
    (library,) = await redis.function_list(scripts.library.name)
    flags = {
        function[1].decode(): {flag.decode() for flag in function[5]} for function in library[5]
    }
    assert flags.keys() == {scripts.function(verb) for verb in scripts.verbs}
    adding = {"push", "enqueue_due", "import", "numbers", "add_history"}
    bare = {verb for verb in scripts.verbs if not flags[scripts.function(verb)]}
    assert bare == adding, "write `-- flags  allow-oom` in its head, unless it adds new data"


@with_functions
async def test_verbs_run_as_functions(bucket: Bucket) -> None:
    before = await calls_of(bucket.redis, "fcall"), await calls_of(bucket.redis, "evalsha")
    await bucket.push(job("a"))
    assert await bucket.pop_ids() == ["a"]
    assert await calls_of(bucket.redis, "fcall") >= before[0] + 2
    assert await calls_of(bucket.redis, "evalsha") == before[1]


async def test_functions_and_scripts_come_back_by_themselves_after_a_flush(bucket: Bucket) -> None:
    async def flush() -> None:
        await bucket.redis.script_flush()
        with suppress(ResponseError):  # for a store without functions
            await bucket.redis.function_flush()

    await bucket.push(job("a"))
    await flush()
    assert await bucket.push(job("b")) == [Code.OK]
    await flush()
    assert await bucket.pop_ids() == ["a", "b"]


@with_own_server
async def test_calls_that_find_no_functions_at_once_load_them_once(redis: Redis) -> None:
    store = VerbStore(Servers.one(redis), Buckets("dq_bucket_%d", "dq_queue_%s"))
    await store.push(0, [job("a")])
    await redis.function_flush()
    before = await calls_of(redis, "function|load")
    await asyncio.gather(*(store.push(0, [job(str(n))]) for n in range(32)))
    assert await calls_of(redis, "function|load") == before + 1


def read_leaking(name: str) -> str:
    """The text of a script; touch leaves all state of a call behind, and fails."""
    if name != "touch":
        return read(name)
    return """-- requires  _job
-- waits  never
return function()
  arrive('t', 7)
  freed.t, sound_topics.t, sound_sets['{t}'], read_bytes, done_bytes, scope = true, true, true, 10 ^ 9, 10 ^ 9, {}
  due_at(0)
  error('planted')
end
"""


@with_functions
async def test_a_call_after_one_that_failed_finds_nothing_of_it(bucket: Bucket) -> None:
    """The library keeps its variables between calls; those of a call are set again each time."""
    leaking = VerbStore(Servers.one(bucket.redis), bucket.store.buckets, Scripts(read=read_leaking))
    await leaking.push(0, [job("a")])
    with pytest.raises(Unavailable):
        await leaking.touch(0, [])
    assert await leaking.pause(0, "other", None) == NO_CHANGE
    assert (await leaking.get(0, ["a"]))[0] is not None
    assert len((await leaking.pop(0, [Demand(("t",), 1)])).jobs[0]) == 1


@with_functions
async def test_one_library_serves_all_buckets_of_a_store(redis: Redis) -> None:
    buckets = Buckets("dq_bucket_%d", "dq_queue_%s", Layout(2))
    store = VerbStore(Servers.one(redis), buckets)
    for bucket in (0, 1, 0, 1):
        await store.push(bucket, [job(f"in {bucket}")])
    for bucket in (1, 0):
        (found,) = (await store.pop(bucket, [Demand(("t",), 9)])).jobs
        assert [each.id for each in found] == [f"in {bucket}"]


def read_version(number: int, name: str) -> str:
    return f"-- version {number}\n{read(name)}"


@with_own_server
async def test_two_versions_work_side_by_side_and_old_functions_are_removed(redis: Redis) -> None:
    """A rolling upgrade: the new server removes a library that the old one, still running, loads again."""
    buckets, servers = Buckets("dq_bucket_%d", "dq_queue_%s"), Servers.one(redis)
    scripts = [replace(ZSET, read=partial(read_version, number)) for number in (1, 2)]
    old, new = (VerbStore(servers, buckets, version) for version in scripts)
    wheel = Scripts("wheel", WHEEL_SLOTS)
    await redis.function_load(wheel.library.source)
    await old.push(0, [job("a")])
    await new.push(0, [job("b")])
    assert len(await libraries(redis)) == 3
    await remove_old_functions(servers, scripts[1])
    assert await libraries(redis) == {scripts[1].library.name, wheel.library.name}
    (found,) = (await old.pop(0, [Demand(("t",), 9)])).jobs
    assert [each.id for each in found] == ["a", "b"]
    await remove_old_functions(servers, scripts[1])
    assert await libraries(redis) == {scripts[1].library.name, wheel.library.name}


@with_own_server
async def test_a_full_store_that_has_lost_its_functions_goes_on_with_scripts(
    bucket: Bucket,
) -> None:
    await bucket.push(job("a"))
    await bucket.redis.config_set("maxmemory", 1)
    await bucket.redis.function_flush()
    with pytest.raises(Unavailable):
        await bucket.push(job("b"))
    assert await bucket.pop_ids() == ["a"]
    assert await bucket.finish("a") == [Code.OK]


@with_own_server
async def test_a_user_that_may_not_load_functions_gets_scripts(
    redis: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    await redis.acl_setuser(
        "plain",
        enabled=True,
        passwords=["+p"],
        keys=["*"],
        channels=["*"],
        categories=["+@all"],
        commands=["-function", "-fcall"],
    )
    port = redis.connection_pool.connection_kwargs["port"]
    async with Client(
        host=LOOPBACK, port=port, username="plain", password="p", protocol=2
    ) as plain:
        store = VerbStore(Servers.one(plain), Buckets("dq_bucket_%d", "dq_queue_%s"))
        assert (await store.push(0, [job("a")])).codes == [Code.OK]
        assert (await store.get(0, ["a"]))[0] is not None
    assert len(caplog.messages) == 1
    assert "has no permissions to run the 'fcall' command" in caplog.text
