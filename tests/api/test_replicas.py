"""`durability = replica`: what the server says of itself while replicas are there and while they are not."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING, Any, Final

from tests.api_client import UNAVAILABLE, open_api
from tests.clusters import SAFE
from tests.processes import LOOPBACK, environment
from tests.waiting import until

if TYPE_CHECKING:
    from tests.processes import Processes, QueueServer

ASKED: Final[dict[str, Any]] = {"durability": "replica", "redis__replica_timeout": 200}


async def test_a_server_tells_whether_a_failover_could_lose_jobs(processes: Processes) -> None:
    master = processes.redis(*SAFE)
    server = processes.server(master, **ASKED)
    settings = master.settings(1) | {"durability": "replica"}
    try:
        async with open_api(server.url) as api:
            await until(lambda: _ready(server) == {"away": [], "durable": False})
            refused = await api.push(topic="t", id="no replica has it")
            assert (refused.status, refused.code) == (503, UNAVAILABLE)
            assert "warning: 0 replicas follow the store" in _check(settings)
            stats = (await api.call("/stats", {})).ok()["store"]
            assert not stats["durable"]
            assert "0 replicas follow the store" in " ".join(stats["warnings"])
            replica = processes.redis(*SAFE, "--replicaof", f"{LOOPBACK} {master.port}")
            await until(lambda: _ready(server) is None, within_s=20)
            (await api.push(topic="t", id="a replica has it")).ok()
            assert "warning" not in _check(settings)
            replica.close()
    finally:
        server.close()
        master.close()


def _ready(server: QueueServer) -> Any:
    with urllib.request.urlopen(f"{server.url}/readyz", timeout=5) as answer:
        return json.load(answer)["data"]


def _check(settings: dict[str, object]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "delayqueue", "check"],
        env=environment(settings | {"bind_address": f"{LOOPBACK}:0"}),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done.stdout + done.stderr
