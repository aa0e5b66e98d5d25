"""A store that answers and takes no new jobs: whoever looks is told why, in one sentence."""

import asyncio
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from delayqueue.cli.top import Top
from tests.api.test_eviction import is_writable
from tests.api.test_unwell_stores import readiness
from tests.api_client import OK, UNAVAILABLE, Api, open_api
from tests.figures import scrape
from tests.processes import LOOPBACK, REPOSITORY, Processes, run_program
from tests.waiting import until, until_async

SERVICE_UNAVAILABLE: Final = 503
LOOKS: Final = 20
NEARLY_FULL: Final = (
    r"the store's memory is (8[5-9]|9\d) % full, and pushes are refused when it is full: "
    r"raise `maxmemory` in its config, or end jobs"
)

Trouble = Callable[[Any, Path], object]


def full_memory(redis: Any, _: Path) -> object:
    redis.config_set("maxmemory-policy", "noeviction")
    return redis.config_set("maxmemory", 1)


def full_disk(redis: Any, folder: Path) -> object:
    gone = folder / "gone"
    gone.mkdir()
    redis.config_set("dir", str(gone))
    redis.config_set("save", "3600 1")
    gone.rmdir()
    redis.bgsave()
    while redis.info("persistence")["rdb_last_bgsave_status"] == "ok":
        time.sleep(0.01)
    return None


def a_replica(redis: Any, _: Path) -> object:
    return redis.replicaof(LOOPBACK, 1)


def too_few_replicas(redis: Any, _: Path) -> object:
    return redis.config_set("min-replicas-to-write", 1)


SINCE: Final = re.compile(r" \(since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\)")
SAID: Final[dict[Trouble, str]] = {
    full_memory: "its memory is full, so it takes no new jobs: raise `maxmemory` in its config, or end jobs",
    full_disk: "it cannot write to its disk: make room there, or see why in its log",
    a_replica: "it is a read-only replica: name the master, or the Sentinels",
    too_few_replicas: "too few replicas follow",
}


@pytest.mark.parametrize("trouble", SAID, ids=lambda trouble: trouble.__name__)
async def test_a_store_that_takes_no_new_jobs_is_named_in_one_sentence_wherever_somebody_looks(
    processes: Processes, tmp_path: Path, trouble: Trouble
) -> None:
    store = processes.redis("--enable-protected-configs", "yes")
    server = processes.server(store, redis__db=0, language="en")
    sentence = f"the store is unavailable: {SAID[trouble]}"
    async with open_api(server.url) as api:
        (await api.push(topic="t", id="before")).ok()
        assert await is_writable(api, 1)
        with Redis(host=LOOPBACK, port=store.port) as redis:
            trouble(redis, tmp_path)
        said = (await api.push(topic="t", id="during")).refused(UNAVAILABLE, SERVICE_UNAVAILABLE)
        assert said == sentence
        if trouble is not full_memory:  # with which jobs are handed out
            popped = await api.pop("t", timeout=5)
            assert popped.refused(UNAVAILABLE, SERVICE_UNAVAILABLE) == sentence
        await until_async(lambda: is_told(api, sentence))
        assert await is_writable(api, 0)
        assert (await scrape(api)).sum("delayqueue_store_up") == 1
        if trouble is full_memory:
            ready = await api.request("GET", "/readyz")
            assert (ready.code, ready.data["alarms"]) == (OK, [sentence])
        else:
            await until_async(lambda: is_unready(api))
            assert SINCE.fullmatch(readiness(server)[len(sentence) :])
            assert readiness(server).startswith(sentence)
        assert sentence in Top()((await api.call("/stats", {})).ok())
    settings = store.settings(0)
    checked = run_program("check", settings=settings)
    assert SAID[trouble] in checked.stdout + checked.stderr
    assert "ok: store" not in checked.stdout
    assert checked.returncode == 1 or trouble is not a_replica
    looked = run_program("fsck", settings=settings | {"log_level": "error"})
    assert (looked.returncode, looked.stderr) == (0, "")
    assert looked.stdout.endswith("all is whole\n")
    await until(lambda: f"ERROR delayqueue.store.watch: {sentence}" in server.logged())
    if trouble is full_memory:  # consumers go on, and so does a server that starts
        server.stop()
        server.start()
        async with open_api(server.url) as api:
            assert (await api.pop("t")).ok()["id"] == "before"


async def test_a_command_that_the_store_refuses_us_is_named_wherever_somebody_looks(
    processes: Processes,
) -> None:
    store = processes.redis()
    server = processes.server(store, redis__db=0, language="en")
    sentence = (
        "the store is unavailable: it does not let us call TIME: allow our user that in its ACL, "
        "on keys and channels that begin like bucket_name, and rename no commands"
    )
    async with open_api(server.url) as api:
        async with AsyncRedis(host=LOOPBACK, port=store.port) as redis:
            await redis.acl_setuser("default", enabled=True, nopass=True, commands=["-time"])
        await until(lambda: readiness(server).startswith(sentence))
        said = (await api.push(topic="t", id="a")).refused(UNAVAILABLE, SERVICE_UNAVAILABLE)
        assert said == sentence
    await until(lambda: f"ERROR delayqueue.store.watch: {sentence}" in server.logged())
    checked = run_program("check", settings=store.settings(0))
    assert (checked.returncode, checked.stdout) == (1, "ok: settings\n")
    assert checked.stderr == f"delay-queue: {sentence}\n"


async def test_a_renamed_command_is_named(processes: Processes) -> None:
    store = processes.redis("--rename-command", "LPOS", "DQPOS")
    checked = run_program("check", settings=store.settings(0))
    assert (checked.returncode, checked.stdout) == (1, "ok: settings\n")
    assert "it does not let us call LPOS: " in checked.stderr


async def test_the_user_of_the_docs_may_do_all_that_a_server_does(processes: Processes) -> None:
    page = (REPOSITORY / "docs" / "scaling.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"`ACL SETUSER queue on (>….*?)`", page)
    store = processes.redis("--appendonly", "yes", "--appendfsync", "always")
    async with AsyncRedis(host=LOOPBACK, port=store.port) as redis:
        rules = line.replace("…", "secret").split()
        await redis.execute_command("ACL", "SETUSER", "queue", "on", *rules)  # type: ignore[no-untyped-call]  # redis-py has no types here
        server = processes.server(
            store, redis__db=0, durability="fsync", redis__user="queue", redis__password="secret"
        )
        async with open_api(server.url) as api:
            (await api.push(topic="t", id="a")).ok()
            assert (await api.pop("t", timeout=5)).ok()["id"] == "a"
            (await api.call("/finish", {"id": "a"})).ok()
            (await api.call("/stats", {})).ok()
            await until_async(lambda: is_writable(api, 1))
        assert await redis.acl_log() == []
    user: dict[str, object] = {"redis.user": "queue", "redis.password": "secret"}
    checked = run_program("check", settings=user | store.settings(0))
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "warning" not in checked.stdout


async def is_told(api: Api, sentence: str) -> bool:
    """Long after the entries of the servers that write none have expired, this one is still listed."""
    stats: Any = (await api.call("/stats", {})).ok()
    return bool(stats["store"]["alarms"] == [sentence] and len(stats["servers"]) == 1)


async def is_unready(api: Api) -> bool:
    return (await api.request("GET", "/readyz")).code == UNAVAILABLE


async def test_a_replica_without_our_functions_is_named_all_the_same(processes: Processes) -> None:
    """It has those of another master, and a script that finds nothing to do runs there: that is no sign of health."""
    other = processes.redis()
    store = processes.redis()
    server = processes.server(store, redis__db=0, language="en")
    sentence = f"the store is unavailable: {SAID[a_replica]}"
    async with open_api(server.url) as api:
        (await api.push(topic="t", id="before", delay=60)).ok()
        with Redis(host=LOOPBACK, port=store.port) as redis:
            redis.replicaof(LOOPBACK, other.port)
        await until_async(lambda: is_unready(api))
        await until(lambda: readiness(server).endswith("UTC)"))
        for _ in range(LOOKS):
            assert readiness(server).startswith(sentence)
            await asyncio.sleep(0.2)
    assert "refuses functions" not in server.logged()


async def test_memory_that_is_nearly_full_is_a_warning(processes: Processes) -> None:
    """Pushes are refused when it is full: from 85 % on, as in the alert DelayQueueStoreFull."""
    store = processes.redis("--appendonly", "yes")
    server = processes.server(store, redis__db=0, language="en")
    async with open_api(server.url) as api, AsyncRedis(host=LOOPBACK, port=store.port) as redis:
        (await api.push(topic="t", id="a", delay=60)).ok()
        used: int = (await redis.info("memory"))["used_memory"]
        assert await warnings(api) == []
        await redis.config_set("maxmemory", used * 100 // 50)
        assert await warnings(api) == []
        await redis.config_set("maxmemory", used * 100 // 93)
        (said,) = await warnings(api)
        assert re.fullmatch(NEARLY_FULL, said)
        checked = run_program("check", settings=store.settings(0))
        assert re.search(f"warning: {NEARLY_FULL}\n", checked.stdout)
        await redis.config_set("maxmemory", 0)
        assert await warnings(api) == []


async def warnings(api: Api) -> list[str]:
    stats: Any = (await api.call("/stats", {})).ok()
    return list(stats["store"]["warnings"])


async def test_while_the_store_is_away_each_page_is_told_the_reason(processes: Processes) -> None:
    store = processes.redis()
    server = processes.server(store, redis__db=0, language="en")
    async with open_api(server.url) as api:
        (await api.push(topic="t", id="a", delay=60)).ok()
        store.kill()
        for body in ({}, {"counts": False}):
            said = (await api.call("/stats", body)).refused(UNAVAILABLE, SERVICE_UNAVAILABLE)
            assert said == "the store is unavailable: it cannot be reached"
