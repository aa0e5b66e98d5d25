"""docs/howto/backup.md: its backups, made under load, are restored, and nothing is missing."""

import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest
from redis import Redis

from delayqueue import Client
from delayqueue.client import Job
from tests.processes import Processes, QueueServer, free_port

from .follow import Follower
from .markdown import blocks, read

PAGE: Final = "docs/howto/backup.md"
COPY, PUT_BACK, SNAPSHOT, REBUILD = (block.text for block in blocks(read(PAGE), "sh"))
LOOK, CHECK = re.findall(r"`(delay-queue (?:topics|fsck))`", read(PAGE))
JOBS: Final = 1000
# a large snapshot, as Redis lets its own tests have it: two seconds of loading, in which it answers LOADING
LOADED_SLOWLY: Final = 1000
SLOWLY: Final = "--key-load-delay 2000 --loading-process-events-interval-bytes 1024"

pytestmark = pytest.mark.skipif(
    shutil.which("redis-cli") is None, reason="redis-cli is not installed"
)


def push(server: QueueServer, prefix: str) -> None:
    jobs = [Job(topic="order", body=str(n), id=f"{prefix}{n}", delay=1800) for n in range(JOBS)]
    with Client(server.url) as queue:
        assert {outcome.code for outcome in queue.push_many(jobs)} == {0}


def assert_holds(server: QueueServer, prefix: str) -> None:
    ids = [f"{prefix}{n}" for n in range(JOBS)]
    with Client(server.url) as queue:
        assert [job and job.body for job in queue.get_many(ids)] == [str(n) for n in range(JOBS)]


def readable_by_others(path: Path) -> list[Path]:
    """What other users can read there: nothing in directories that they cannot enter."""
    if not path.stat().st_mode & 0o077:
        return []
    return (
        [path, *(found for each in path.iterdir() for found in readable_by_others(each))]
        if path.is_dir()
        else [path]
    )


def test_the_embedded_store_is_copied_while_it_works_and_put_back(processes: Processes) -> None:
    server = processes.server()
    follower = Follower(server.home, server)
    push(server, "before-")
    with ThreadPoolExecutor() as others:
        meanwhile = others.submit(push, server, "meanwhile-")
        follower.run("redis-cli -s data/redis.sock bgrewriteaof")
        follower.run(COPY)
        meanwhile.result()
    assert readable_by_others(server.home / "backup") == []
    push(server, "after-")
    server.stop()
    follower.run(PUT_BACK)
    server.start()
    assert_holds(server, "before-")
    with Client(server.url) as queue:
        assert queue.get("after-0") is None
    assert follower.run(LOOK).splitlines()[1].startswith("order ")
    assert follower.run(CHECK).endswith("all is whole\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_root_puts_back_belongs_to_the_user_of_the_server(
    processes: Processes, tmp_path: Path
) -> None:
    for name in ("data", "backup"):
        (tmp_path / name / "appendonlydir").mkdir(parents=True)
    os.chown(tmp_path / "data", 10001, 10001)  # as in the image
    Follower(tmp_path, processes.server()).run(PUT_BACK)
    for path in (tmp_path / "data", tmp_path / "data" / "appendonlydir"):
        assert (path.stat().st_uid, path.stat().st_gid) == (10001, 10001)


def test_a_snapshot_of_redis_is_restored(processes: Processes, tmp_path: Path) -> None:
    old = processes.redis("--repl-diskless-sync-delay", "0")
    server = processes.server(old, redis__db=1)
    push(server, "")
    with Redis(port=old.port) as redis:
        redis.mset({f"other{n}": "x" * 100 for n in range(LOADED_SLOWLY)})
    follower = Follower(tmp_path, server)
    follower.run(SNAPSHOT.replace("6379", str(old.port)))
    assert readable_by_others(tmp_path / "dump.rdb") == []
    port = str(free_port())
    follower.run(REBUILD.replace("6380", port).replace("redis-server", f"redis-server {SLOWLY}"))
    assert readable_by_others(tmp_path / "restored") == []
    new = processes.redis("--appendonly", "yes", "--dir", str(tmp_path / "restored"))
    assert_holds(processes.server(new, redis__db=1), "")
