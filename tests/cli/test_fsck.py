"""`delay-queue fsck` beside a server that runs: what it prints, what it mends, how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest
from redis import Redis

from tests.api_client import open_api
from tests.processes import LOOPBACK, environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.processes import Processes, StoreServer

TAG: Final = "{dq_bucket_1}"
CLEAN, LEFT, FAILED = 0, 1, 2


class Bed:
    """A store with a database of its own, and the settings of a server on it."""

    def __init__(self, store: StoreServer, **settings: object) -> None:
        database = store.new_database()
        self.settings = {"redis.host": store.address, "redis.db": database, **settings}
        self.redis: Any = Redis(host=LOOPBACK, port=store.port, db=database)

    def plant_lost(self, count: int) -> None:
        """Jobs of topic t that nothing leads to."""
        record = "0" + "!!!!!#z" * 2 + "!!!#z" + '!"' + "tbody"
        self.redis.hset(f"{TAG}:job", mapping={f"job-{i}": record for i in range(count)})

    def fsck(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return fsck(self.settings, *arguments)


def fsck(settings: dict[str, object], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "delayqueue", "fsck", *arguments],
        env=environment({"log_level": "error"} | settings),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.fixture
def bed(redis_server: StoreServer) -> Iterator[Bed]:
    bed = Bed(redis_server)
    yield bed
    bed.redis.close()


def test_a_whole_store_is_reported_whole(bed: Bed) -> None:
    ended = bed.fsck()
    assert (ended.returncode, ended.stderr) == (CLEAN, "")
    looked, whole = ended.stdout.splitlines()
    assert looked.startswith("looked at 0 entries in ")
    assert whole == "all is whole"


def test_a_finding_is_a_line_and_stays_until_it_is_repaired(bed: Bed) -> None:
    bed.plant_lost(1)
    lost = "bucket 1: lost: job 'job-0' of topic 't' is in no place: it would never be delivered"
    topic = "bucket 1: topic: topic 't' has jobs and is not in the list of topics"
    ended = bed.fsck()
    assert ended.returncode == LEFT
    assert ended.stdout.splitlines()[0:2] == [lost, topic]
    assert ended.stdout.splitlines()[-1] == "left: 2 (1 lost, 1 topic)"
    ended = bed.fsck("--repair")
    assert ended.returncode == CLEAN
    assert ended.stdout.splitlines()[0:2] == [f"{lost}: mended", f"{topic}: mended"]
    assert ended.stdout.splitlines()[-1] == "mended: 2 (1 lost, 1 topic)"
    assert bed.fsck().stdout.splitlines()[-1] == "all is whole"


def test_json_is_one_object(bed: Bed) -> None:
    bed.plant_lost(2)
    bed.redis.set(f"{TAG}:else", "1")
    ended = bed.fsck("--repair", "--json")
    assert ended.returncode == LEFT
    report = json.loads(ended.stdout)
    assert (report["clean"], report["left"]) == (False, {"key": 1})
    assert report["found"] == {"lost": 2, "topic": 1, "key": 1}
    assert report["mended"] == {"lost": 2, "topic": 1}
    assert {
        "bucket": 1,
        "kind": "lost",
        "name": "t",
        "id": "job-1",
        "mended": True,
        "text": "job 'job-1' of topic 't' is in no place: it would never be delivered",
    } in report["findings"]


def test_many_findings_are_counted_and_not_all_shown(bed: Bed) -> None:
    bed.plant_lost(1500)
    lines = bed.fsck().stdout.splitlines()
    assert len(lines) == 104
    assert lines[100] == "and 1401 more"
    assert lines[-1] == "left: 1501 (1500 lost, 1 topic)"


def test_ids_cannot_forge_lines(bed: Bed) -> None:
    bed.redis.hset(f"{TAG}:job", "a\n\x1b[2Jb", "garbage")
    [line, *_] = bed.fsck().stdout.splitlines()
    assert line == "bucket 1: record: the record of job 'a\\n\\x1b[2Jb' cannot be read"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"redis.host": "127.0.0.1:1"}, "Error 111 connecting"),
        ({"bucket_size": "none"}, "must be a whole number"),
    ],
)
def test_what_keeps_it_from_looking_is_one_line(settings: dict[str, object], says: str) -> None:
    ended = fsck(settings)
    assert (ended.returncode, ended.stdout) == (FAILED, "")
    [line] = ended.stderr.splitlines()
    assert says in line


def test_data_that_was_laid_out_otherwise_is_not_touched(bed: Bed, processes: Processes) -> None:
    server = processes.server(None, **settings_of(bed, bucket_size=2))
    server.close()
    ended = bed.fsck("--repair")
    assert ended.returncode == FAILED
    assert "set bucket_size = 2" in ended.stderr


def settings_of(bed: Bed, **more: object) -> dict[str, Any]:
    return {name.replace(".", "__"): value for name, value in bed.settings.items()} | more


async def test_a_running_server_delivers_what_was_repaired(bed: Bed, processes: Processes) -> None:
    server = processes.server(None, **settings_of(bed))
    async with open_api(server.url) as api:
        for number in range(40):
            (await api.push(topic="mail", id=f"job-{number}", delay=3600)).ok()
        bed.redis.delete(f"{TAG}:delay:mail")
        assert bed.fsck("--repair").returncode == CLEAN
        (await api.call("/kick", {"topic": "mail", "count": 100})).ok()
        popped = (await api.pop("mail", count=100)).ok()
    assert {job["id"] for job in popped} == {f"job-{number}" for number in range(40)}


def test_it_looks_at_an_embedded_store_with_and_without_its_server(processes: Processes) -> None:
    server = processes.server()
    settings: dict[str, object] = {"data_dir": server.home / "data"}
    assert fsck(settings).returncode == CLEAN
    server.stop()
    assert fsck(settings).returncode == CLEAN
