"""docs/howto/moving.md: a store is moved in each of its ways, and nothing is missing."""

import shutil
from pathlib import Path
from typing import Final

import pytest

from delayqueue import Client
from delayqueue.client import Job, ReservedJob
from tests.processes import (
    LOOPBACK,
    Processes,
    QueueServer,
    free_port,
    redis_binary,
    run_program,
)
from tests.waiting import until

from .follow import Follower
from .markdown import blocks, read

PAGE: Final = "docs/howto/moving.md"
FOLLOW, SWITCH, OUT, BACK, COMMANDS, LOOK = (block.text for block in blocks(read(PAGE), "sh"))
[CHECKED] = blocks(read(PAGE), "console")
DATABASE: Final = 1
IDS: Final = [str(n) for n in range(100)]
UNWELL: Final = 503

pytestmark = pytest.mark.skipif(
    shutil.which("redis-cli") is None, reason="redis-cli is not installed"
)


def fill(server: QueueServer) -> ReservedJob:
    """Push jobs. Returns one that is reserved."""
    with Client(server.url) as queue:
        queue.push_many([Job(topic="order", body=each, id=each, delay=1800) for each in IDS])
        queue.push("held", ttr=600)
        held = queue.pop("held")
    assert held
    return held


def program(command: str, server: QueueServer, **settings: object) -> str:
    """What `delay-queue` prints of a store with these settings, and of the server. It must succeed."""
    settings |= {"url": server.url, "bind_address": f"{LOOPBACK}:{free_port()}"}
    done = run_program(command, settings=settings)
    assert done.returncode == 0, done
    return done.stdout


def lead(server: QueueServer, **settings: object) -> None:
    """Let the server, which has ended, use the store with these settings."""
    named = {
        f"DELAYQUEUE_{key.upper().replace('.', '_')}": value for key, value in settings.items()
    }
    server.set_environment(**{key: str(value) for key, value in named.items()})
    server.start()


def assert_moved(server: QueueServer, held: ReservedJob, **settings: object) -> None:
    with Client(server.url) as queue:
        assert [job and job.body for job in queue.get_many(IDS)] == IDS
        queue.finish(held)
    said = [program(line.split()[-1], server, **settings) for line in LOOK.splitlines()]
    assert "a new one" not in said[0]
    assert said[1].endswith("all is whole\n")
    assert "order" in said[2]


async def test_a_store_is_replaced_by_its_replica(processes: Processes, tmp_path: Path) -> None:
    old, new = processes.redis("--repl-diskless-sync-delay", "0"), processes.valkey()
    server = processes.server(old, redis__db=DATABASE)
    held = fill(server)
    settings = new.settings(DATABASE)
    shown = CHECKED.text.partition("\n")[2].replace("<address>", new.address)
    assert program("check", server, **settings).startswith(shown)
    follower = Follower(tmp_path, server)
    for block in FOLLOW, SWITCH:
        follower.run(block.replace("6379", str(old.port)).replace("6380", str(new.port)))
    await until(lambda: server.probe("/readyz") == UNWELL)
    server.stop()
    lead(server, **settings)
    assert_moved(server, held, **settings)


def test_the_files_of_the_embedded_store_become_those_of_redis_and_back(
    processes: Processes,
) -> None:
    server = processes.server(redis__binary=redis_binary())
    held = fill(server)
    follower, port = Follower(server.home, server), free_port()
    server.stop()
    follower.run(OUT.replace("6380", str(port)))
    settings: dict[str, object] = {"redis.host": f"{LOOPBACK}:{port}", "redis.db": 0}
    lead(server, **settings)
    assert_moved(server, held, **settings)
    held = fill(server)
    server.stop()
    # as if the jobs were in database 1, and back into 0
    follower.run(f"redis-cli -p {port} swapdb 0 1")
    follower.run(BACK.replace("6380", str(port)))
    settings = {"redis.host": "embedded", "data_dir": server.home / "back"}
    lead(server, **settings)
    assert_moved(server, held, **settings)


def test_an_older_store_reads_the_commands_of_a_newer_one(
    processes: Processes, tmp_path: Path
) -> None:
    old = processes.valkey("--appendonly", "yes")
    server = processes.server(old, redis__db=DATABASE)
    held = fill(server)
    server.stop()
    Follower(tmp_path, server).run(COMMANDS.replace("6379", str(old.port)))
    shutil.copytree(old.home / "appendonlydir", tmp_path / "appendonlydir")
    new = processes.redis("--appendonly", "yes", "--dir", str(tmp_path))
    settings = new.settings(DATABASE)
    lead(server, **settings)
    assert_moved(server, held, **settings)
