"""A start needs right settings and no healthy store: the server comes up, says what ails the store, and waits."""

import http.client
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from redis import Redis
from redis.exceptions import RedisError

from delayqueue.store.keys import BucketKeys
from tests.api_client import OK, UNAVAILABLE, Api, open_api
from tests.clusters import ClusterNode
from tests.processes import (
    LOOPBACK,
    Process,
    Processes,
    QueueServer,
    StoreServer,
    free_port,
    redis_binary,
    run_program,
)
from tests.waiting import until, until_async

OK_STATUS: Final = http.client.OK
SERVICE_UNAVAILABLE: Final = http.client.SERVICE_UNAVAILABLE
START_S: Final = 60.0
SLOTS: Final = 16384
UNTIL_THEN: Final = "until then, clients get code 6 (HTTP 503)"


class Unwell(NamedTuple):
    """A store that is not well: how a server reaches it, and what makes it well."""

    settings: dict[str, object]
    heal: Callable[[], object]


def _of(store: StoreServer, heal: Callable[[], object]) -> Unwell:
    return Unwell(store.settings(1), heal)


def _ask(store: StoreServer, *words: object) -> Any:
    with Redis(host=LOOPBACK, port=store.port) as client:
        return client.execute_command(*words)


def not_there(processes: Processes, _: Path) -> Unwell:
    store = StoreServer("redis", processes.home("redis"), redis_binary())
    processes.adopt(store)
    return _of(store, store.start)


def frozen(processes: Processes, _: Path) -> Unwell:
    store = processes.redis()
    store.freeze()
    limits = {"redis.read_timeout": 1000, "redis.write_timeout": 1000}
    return Unwell(store.settings(1) | limits, store.thaw)


def a_replica(processes: Processes, _: Path) -> Unwell:
    store = processes.redis("--replicaof", LOOPBACK, "1")
    return _of(store, lambda: _ask(store, "REPLICAOF", "NO", "ONE"))


def loading(processes: Processes, _: Path) -> Unwell:
    """It would take two minutes."""
    store = processes.redis("--appendonly", "yes")
    with Redis(host=LOOPBACK, port=store.port) as client:
        client.mset({f"key{n}": os.urandom(1024) for n in range(4000)})
        client.bgrewriteaof()
        while client.info("persistence")["aof_rewrite_in_progress"]:
            time.sleep(0.01)
        client.config_set("appendfsync", "always")
        client.set("last", 1)
    store.kill()
    slowly = ("--key-load-delay", "30000", "--loading-process-events-interval-bytes", "1024")
    store._command += slowly
    store.launch()
    return _of(store, lambda: _ask(store, "CONFIG", "SET", "key-load-delay", 0))


def without_a_cluster(processes: Processes, _: Path) -> Unwell:
    """A server of a Cluster that is not formed yet."""
    node = processes.started(ClusterNode(processes.home("node")))
    heal = lambda: _ask(node, "CLUSTER", "ADDSLOTSRANGE", 0, SLOTS - 1)  # noqa: E731
    return Unwell({"redis.cluster": node.address}, heal)


def without_the_first_bucket(processes: Processes, _: Path) -> Unwell:
    """A Cluster in which no server holds the slot of bucket 1."""
    node = processes.started(ClusterNode(processes.home("node")))
    with Redis(host=LOOPBACK, port=node.port) as client:
        layout = BucketKeys.of(1, "dq_bucket_%d", "dq_queue_%s").named("layout")
        slot = int(client.execute_command("CLUSTER", "KEYSLOT", layout))
    _ask(node, "CLUSTER", "ADDSLOTSRANGE", 0, slot - 1, slot + 1, SLOTS - 1)
    return Unwell({"redis.cluster": node.address}, lambda: _ask(node, "CLUSTER", "ADDSLOTS", slot))


def without_sentinels(processes: Processes, folder: Path) -> Unwell:
    master = processes.redis()
    file = folder / "sentinel.conf"
    file.write_text(f"port {free_port()}\nsentinel monitor mymaster {LOOPBACK} {master.port} 1\n")
    port = int(file.read_text().split()[1])
    sentinel = Sentinel(processes.home("sentinel"), file, port)
    processes.adopt(sentinel)
    return Unwell({"redis.sentinel": sentinel.address}, sentinel.start)


class Sentinel(Process):
    """A single Sentinel."""

    def __init__(self, home: Path, file: Path, port: int) -> None:
        super().__init__("sentinel", home, [redis_binary(), str(file), "--sentinel"], port=port)

    def is_ready(self) -> bool:
        try:
            with Redis(host=LOOPBACK, port=self.port) as client:
                return bool(client.ping())
        except RedisError:
            return False


UNWELL: Final[dict[Callable[[Processes, Path], Unwell], str]] = {
    not_there: "it cannot be reached",
    frozen: "it does not answer",
    a_replica: "it is a read-only replica",
    loading: "it is loading its data",
    without_a_cluster: "it cannot be reached",
    without_the_first_bucket: "no server of the Cluster holds a slot that is needed",
    without_sentinels: "it cannot be reached",
}


def readiness(server: QueueServer) -> str:
    """The message of /readyz."""
    connection = http.client.HTTPConnection(LOOPBACK, server.port, timeout=10)
    try:
        connection.request("GET", "/readyz", headers={"Accept-Language": "en"})
        message: str = json.loads(connection.getresponse().read())["message"]
    finally:
        connection.close()
    return message


@pytest.mark.parametrize(
    ("state", "workers"),
    [*((state, 1) for state in UNWELL), (not_there, 2)],
    ids=[*(state.__name__ for state in UNWELL), "not_there, workers"],
)
async def test_a_server_starts_on_a_store_that_is_not_well_and_goes_on_when_it_is(
    processes: Processes,
    tmp_path: Path,
    topic: str,
    state: Callable[[Processes, Path], Unwell],
    workers: int,
) -> None:
    unwell = state(processes, tmp_path)
    config = (
        f"language = en\n[limit {topic}]\nrate = 5\n[schedule {topic}]\ntopic = t\nevery = 1h\n"
    )
    settings: dict[str, Any] = {
        name.replace(".", "__"): value for name, value in unwell.settings.items()
    }
    server = processes.configured(config, None, workers=workers, **settings)
    server.launch()
    await until(lambda: server.probe("/healthz") == OK_STATUS, within_s=START_S)
    assert server.probe("/readyz") == SERVICE_UNAVAILABLE
    await until(lambda: UNWELL[state] in readiness(server))
    await until(lambda: UNTIL_THEN in server.logged())
    async with open_api(server.url) as api:
        (await api.push(topic=topic, id=topic, delay=0)).refused(UNAVAILABLE, SERVICE_UNAVAILABLE)
        unwell.heal()
        await until(server.is_ready, within_s=START_S)
        await until_async(lambda: is_pushed(api, topic))
        assert (await api.pop(topic)).ok()["id"] == topic
        await until_async(lambda: is_declared(api, topic))
    assert server.stop() == 0
    assert "Traceback" not in server.logged()
    assert state is not without_sentinels or "of the Cluster" not in server.logged()


async def is_pushed(api: Api, topic: str) -> bool:
    """Each worker notices by itself that the store is well: the one that was asked may be another."""
    return (await api.push(topic=topic, id=topic, delay=0)).code == OK


async def is_declared(api: Api, topic: str) -> bool:
    limit = await api.call("/limit", {"topic": topic})
    names = [one["name"] for one in (await api.call("/schedules", {})).ok()]
    return limit.code == OK and bool(limit.data["declared"]) and names == [topic]


async def test_a_wrong_setting_that_only_a_later_look_can_show_ends_the_server_with_a_line(
    processes: Processes, redis_server: StoreServer
) -> None:
    store = processes.redis("--appendonly", "yes", "--appendfsync", "always")
    first = processes.server(store, redis__db=3)
    first.stop()
    store.kill()
    other = processes.configured("", None, redis__host=store.address, redis__db=3, bucket_size=4)
    other.launch()
    await until(lambda: other.probe("/healthz") == OK_STATUS, within_s=START_S)
    store.start()
    assert other.wait() == 2
    log = other.logged()
    assert "bucket_size = 4, but the data in this store was made with bucket_size = 1" in log
    assert "Traceback" not in log


@pytest.fixture(scope="module")
def store_to_lose(processes: Processes) -> StoreServer:
    return processes.redis("--appendonly", "yes")


async def test_readiness_ends_with_the_store(
    processes: Processes, store_to_lose: StoreServer
) -> None:
    """A load balancer that asks right then gets no other answer."""
    server = processes.server(store_to_lose)
    for _ in range(3):
        await until(server.is_ready)
        store_to_lose.kill()
        assert server.probe("/readyz") == SERVICE_UNAVAILABLE
        assert "it cannot be reached" in readiness(server)
        store_to_lose.start()


def test_check_says_that_a_running_embedded_store_hangs(processes: Processes) -> None:
    server = processes.server()
    settings: dict[str, object] = {"data_dir": server.home / "data"}
    (store,) = server.children()
    os.kill(store, signal.SIGSTOP)
    checked = run_program("check", settings=settings)
    os.kill(store, signal.SIGCONT)
    assert (checked.returncode, checked.stdout) == (1, "ok: settings\n")
    assert f"the store does not answer, and process {server.pid} uses it" in checked.stderr
    checked = run_program("check", settings=settings)
    assert (checked.returncode, checked.stderr) == (0, "")
