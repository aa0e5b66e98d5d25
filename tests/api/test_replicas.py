"""`durability = replica`: what the server reports while replicas follow and while they do not."""

import json
import time
import urllib.request
from functools import partial
from typing import Any, Final

from tests.api_client import OK, UNAVAILABLE, Api, open_api
from tests.clusters import SAFE
from tests.processes import LOOPBACK, Processes, QueueServer, run_program
from tests.waiting import until, until_async

TIMEOUT_S: Final = 0.4
TOO_FEW: Final = "存储不可用：跟随的副本太少"  # and not: it does not answer
ASKED: Final[dict[str, Any]] = {
    "durability": "replica",
    "redis__replica_timeout": round(TIMEOUT_S * 1000),
}


async def test_a_server_tells_whether_a_failover_could_lose_jobs(processes: Processes) -> None:
    master = processes.redis(*SAFE)
    server = processes.server(master, **ASKED)
    settings = master.settings(1) | {"durability": "replica"}
    async with open_api(server.url) as api:
        await until(lambda: _ready(server) == {"away": [], "durable": False})
        refused = await api.push(topic="t", id="no replica has it")
        assert (refused.status, refused.code) == (503, UNAVAILABLE)
        assert "warning: 0 replicas follow the store" in _check(settings)
        stats = (await api.call("/stats", {}, {"Accept-Language": "en"})).ok()["store"]
        assert not stats["durable"]
        assert "0 replicas follow the store" in " ".join(stats["warnings"])
        processes.redis(*SAFE, *_follow(master.port))
        await until(lambda: _ready(server) is None)
        await until_async(partial(_is_taken, api, "a replica has it"))
        assert "warning" not in _check(settings)


async def test_while_a_replica_hangs_a_push_is_in_doubt_and_stays_one_job_when_it_is_sent_again(
    processes: Processes,
) -> None:
    master = processes.redis(*SAFE)
    replica = processes.redis(*SAFE, *_follow(master.port))
    server = processes.server(master, **ASKED)
    async with open_api(server.url) as api:
        await until(lambda: _ready(server) is None)
        replica.freeze()
        since_s = time.monotonic()
        refused = await api.push(topic="t", id="1")
        assert refused.refused(UNAVAILABLE, 503).startswith(TOO_FEW)
        assert time.monotonic() - since_s >= TIMEOUT_S
        replica.thaw()
        await until(lambda: _ready(server) is None)
        await until_async(partial(_is_taken, api, "1"))
        jobs = (await api.call("/pop", {"topic": "t", "count": 10, "timeout": 0})).ok()
        assert [job["id"] for job in jobs] == ["1"]
        (await api.call("/finish", {"id": "1"})).ok()


async def _is_taken(api: Api, job_id: str) -> bool:
    """Whether a push is confirmed: on a busy machine one can be in doubt."""
    return (await api.push(topic="t", id=job_id)).code == OK


def _follow(port: int) -> tuple[str, str]:
    return ("--replicaof", f"{LOOPBACK} {port}")


def _ready(server: QueueServer) -> Any:
    with urllib.request.urlopen(f"{server.url}/readyz", timeout=60) as answer:
        return json.load(answer)["data"]


def _check(settings: dict[str, object]) -> str:
    done = run_program("check", settings=settings | {"bind_address": f"{LOOPBACK}:0"})
    return done.stdout + done.stderr
