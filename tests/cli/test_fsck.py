"""`delay-queue fsck` beside a server that runs: what it prints, what it repairs, how it ends."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from redis import Redis

from delayqueue import log
from delayqueue.cli import main
from tests.processes import LOOPBACK, Processes, StoreServer, environment, run_program

from .conftest import Ended

TAG: Final = "{dq_bucket_1}"
CLEAN, LEFT, FAILED = 0, 1, 2


Settings = dict[str, object]
Fsck = Callable[..., Ended]


class Bed:
    """A store with its own database, and the settings of a server on it."""

    def __init__(self, store: StoreServer) -> None:
        database = store.new_database()
        self.settings: Settings = {"redis.host": store.address, "redis.db": database}
        self.redis: Any = Redis(host=LOOPBACK, port=store.port, db=database)

    def plant_lost(self, count: int) -> None:
        """Jobs of topic t that are in no list or set."""
        record = "0" + "!!!!!#z" * 2 + "!!!#z" + '!"' + "tbody"
        self.redis.hset(f"{TAG}:job", mapping={f"job-{i}": record for i in range(count)})


@pytest.fixture
def bed(redis_server: StoreServer) -> Iterator[Bed]:
    bed = Bed(redis_server)
    yield bed
    bed.redis.close()


@pytest.fixture
def fsck(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Fsck:
    """Runs fsck in this process: settings, arguments."""
    monkeypatch.setattr(log, "set_up", lambda *_: None)  # the tests' own logging stays

    def run(settings: Settings, *arguments: str) -> Ended:
        ours = {name: value for name, value in environment(settings).items() if is_setting(name)}
        with monkeypatch.context() as patch:
            for name in filter(is_setting, [*os.environ]):
                patch.delenv(name)
            for name, value in ours.items():
                patch.setenv(name, value)
            status = main(["fsck", *arguments])
        return Ended(status, *capsys.readouterr())

    return run


def is_setting(name: str) -> bool:
    return name.startswith("DELAYQUEUE_")


def test_a_whole_store_is_reported_whole(fsck: Fsck, bed: Bed) -> None:
    ended = fsck(bed.settings)
    assert (ended.status, ended.err) == (CLEAN, "")
    looked, whole = ended.out.splitlines()
    assert looked.startswith("looked at 0 entries in ")
    assert whole == "all is whole"


def test_a_finding_is_a_line_and_stays_until_it_is_repaired(fsck: Fsck, bed: Bed) -> None:
    bed.plant_lost(1)
    lost = (
        "bucket 1: unplaced: job 'job-0' of topic 't' is in no index: it would never be delivered"
    )
    topic = "bucket 1: topic: topic 't' has jobs, but is not in the list of topics"
    ended = fsck(bed.settings)
    assert ended.status == LEFT
    assert ended.out.splitlines()[0:2] == [topic, lost]
    assert ended.out.splitlines()[-1] == "left: 2 (1 topic, 1 unplaced)"
    ended = fsck(bed.settings, "--repair")
    assert ended.status == CLEAN
    assert ended.out.splitlines()[0:2] == [f"{topic}: mended", f"{lost}: mended"]
    assert ended.out.splitlines()[-1] == "mended: 2 (1 topic, 1 unplaced)"
    assert fsck(bed.settings).out.splitlines()[-1] == "all is whole"


def test_json_is_one_object(fsck: Fsck, bed: Bed) -> None:
    bed.plant_lost(2)
    bed.redis.set(f"{TAG}:else", "1")
    ended = fsck(bed.settings, "--repair", "--json")
    assert ended.status == LEFT
    report = json.loads(ended.out)
    assert (report["clean"], report["left"]) == (False, {"key": 1})
    assert report["found"] == {"unplaced": 2, "topic": 1, "key": 1}
    assert report["mended"] == {"unplaced": 2, "topic": 1}
    assert {
        "bucket": 1,
        "kind": "unplaced",
        "name": "t",
        "id": "job-1",
        "mended": True,
        "text": "job 'job-1' of topic 't' is in no index: it would never be delivered",
    } in report["findings"]


def test_many_findings_are_counted_and_not_all_shown(fsck: Fsck, bed: Bed) -> None:
    bed.plant_lost(1500)
    lines = fsck(bed.settings).out.splitlines()
    assert len(lines) == 104
    assert lines[100] == "and 1401 more"
    assert lines[-1] == "left: 1501 (1 topic, 1500 unplaced)"


def test_ids_cannot_forge_lines(fsck: Fsck, bed: Bed) -> None:
    bed.redis.hset(f"{TAG}:job", "a\n\x1b[2Jb", "garbage")
    [line, *_] = fsck(bed.settings).out.splitlines()
    assert line == "bucket 1: record: the record of job 'a\\n\\x1b[2Jb' cannot be read"


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"redis.host": "127.0.0.1:1"}, "Error 111 connecting"),
        ({"bucket_size": "none"}, "must be a whole number"),
    ],
)
def test_what_keeps_it_from_looking_is_one_line(
    fsck: Fsck, settings: dict[str, object], says: str
) -> None:
    ended = fsck(settings)
    assert (ended.status, ended.out) == (FAILED, "")
    [line] = ended.err.splitlines()
    assert says in line


def test_data_that_was_laid_out_otherwise_is_not_touched(
    fsck: Fsck, bed: Bed, processes: Processes
) -> None:
    server = processes.server(None, **settings_of(bed, bucket_size=2))
    server.close()
    ended = fsck(bed.settings, "--repair")
    assert ended.status == FAILED
    assert "set bucket_size = 2" in ended.err


def settings_of(bed: Bed, **more: object) -> dict[str, Any]:
    return {name.replace(".", "__"): value for name, value in bed.settings.items()} | more


def test_it_looks_at_an_embedded_store_with_and_without_its_server(
    fsck: Fsck, processes: Processes
) -> None:
    server = processes.server()
    settings: dict[str, object] = {"data_dir": server.home / "data"}
    assert fsck(settings).status == CLEAN
    server.stop()
    assert fsck(settings).status == CLEAN


@pytest.mark.parametrize("verb", [("fsck",), ("rebalance", "--buckets", "4")])
def test_no_embedded_store_is_made_to_be_checked(tmp_path: Path, verb: tuple[str, ...]) -> None:
    """The server's own may be elsewhere: an empty one is whole, and would hide what is wrong there."""
    place = tmp_path / "elsewhere"
    ended = run_program(*verb, settings={"data_dir": place})
    assert (ended.returncode, ended.stdout) == (FAILED, "")
    assert ended.stderr == (
        f"delay-queue: DELAYQUEUE_DATA_DIR: data_dir = {place}: there is no store; "
        "name the data_dir of the server\n"
    )
    assert not place.exists()


def test_a_store_without_its_files_is_refused_with_what_is_left_of_it(
    fsck: Fsck, tmp_path: Path
) -> None:
    (tmp_path / "dump.rdb").touch()
    ended = fsck({"data_dir": tmp_path})
    assert ended.status == FAILED
    assert "make an append-only file of it" in ended.err
