"""`delay-queue import` as a shell sees it."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import redis

from delayqueue.store.original import source
from tests.importer.old import packed
from tests.processes import LOOPBACK, Processes, StoreServer, free_port

from .conftest import Ended

Run = Callable[..., Ended]


class Old(NamedTuple):
    """A database with jobs of an old server that is stopped."""

    url: str
    redis: redis.Redis

    def push(self, job_id: str, prefix: str = "", topic: str = "t") -> None:
        due_s = int(time.time()) + 3600
        self.redis.set(prefix + job_id, packed(topic, job_id, due_s, 60, "body"))
        self.redis.zadd("dq_bucket_1", {job_id: due_s})


@pytest.fixture
def old(redis_server: StoreServer) -> Iterator[Old]:
    number = redis_server.new_database()
    with redis.Redis(port=redis_server.port, db=number) as connection:
        yield Old(f"redis://{redis_server.address}/{number}", connection)


@pytest.fixture
def new(redis_server: StoreServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of the new server."""
    monkeypatch.setenv("DELAYQUEUE_REDIS_HOST", redis_server.address)
    monkeypatch.setenv("DELAYQUEUE_REDIS_DB", str(redis_server.new_database()))


@pytest.mark.usefixtures("new")
@pytest.mark.parametrize("prefix", ["", "dq_key_"])
def test_it_says_what_it_did_and_finds_the_prefix_by_itself(
    run: Run, old: Old, prefix: str
) -> None:
    for n in range(3):
        old.push(f"job-{n}", prefix)
    first, *_, last = run("import", old.url).out.splitlines()
    assert first.startswith("warning: the store can lose jobs")
    assert last == "the old store holds no more jobs"
    ended = run("import", old.url)
    assert ended.status == 0
    assert "imported 0 jobs in " in ended.out


@pytest.mark.usefixtures("new")
def test_a_job_that_is_set_aside_is_named_and_is_status_1(run: Run, old: Old) -> None:
    old.push("comma", topic="a,b")
    old.push("good")
    ended = run("import", old.url)
    assert ended.status == 1
    assert "set aside comma: topic: has a comma" in ended.err
    assert "imported 1 jobs" in ended.out
    assert "set aside 1 jobs: see the hash dq_import:aside in the old store" in ended.out
    assert old.redis.hkeys("dq_import:aside") == [b"comma"]


def test_jobs_that_a_full_topic_has_no_room_for_are_named_and_are_status_1(
    run: Run, old: Old, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = processes.server()
    monkeypatch.setenv("DELAYQUEUE_DATA_DIR", str(server.home / "data"))
    monkeypatch.setenv("DELAYQUEUE_URL", server.url)
    run("limit", "full", "--max-jobs", "2").ok()
    for n in range(3):
        old.push(f"job-{n}", topic="full")
    ended = run("import", old.url)
    assert ended.status == 1
    assert "left 1 jobs of topic 'full' in the old store: its limits (max_jobs" in ended.err
    assert "imported 2 jobs" in ended.out
    assert "holds no more" not in ended.out
    server.stop()


@pytest.mark.usefixtures("new")
def test_a_wrong_prefix_is_refused_before_anything_is_changed(run: Run, old: Old) -> None:
    old.push("a")
    said = run("import", old.url, "--key-prefix", "dq_key_").failed(2)
    assert said == '--key-prefix "dq_key_": no job has it, they have ""; correct it'
    assert sorted(old.redis.keys()) == [b"a", b"dq_bucket_1"]


@pytest.mark.usefixtures("new")
def test_jobs_of_both_forks_in_one_database_are_taken_over_one_after_the_other(
    run: Run, old: Old
) -> None:
    old.push("a")
    old.push("b", "dq_key_")
    assert "choose one with --key-prefix" in run("import", old.url).failed(2)
    assert "imported 1 jobs" in run("import", old.url, "--key-prefix", "").out
    assert "imported 1 jobs" in run("import", old.url, "--key-prefix", "dq_key_").out
    assert old.redis.keys() == []


@pytest.mark.usefixtures("new")
def test_names_that_were_configured_are_understood(run: Run, old: Old) -> None:
    old.push("a")
    old.redis.rename("dq_bucket_1", "timer-1")
    ended = run("import", old.url, "--bucket-name", "timer-%d", "--queue-name", "ready-%s")
    assert "imported 1 jobs" in ended.out
    assert old.redis.keys() == []


@pytest.mark.usefixtures("new")
@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("redis://127.0.0.1:6379", "the old store: say which database, as in redis://HOST:PORT/1"),
        ("http://127.0.0.1/1", "the old store: must be redis://"),
        (f"redis://{LOOPBACK}:1/1", "the old store: redis.url = redis://127.0.0.1:1/1: Error 111"),
    ],
)
def test_an_old_store_that_cannot_be_read_is_one_line(run: Run, url: str, says: str) -> None:
    assert run("import", url).failed(2).startswith(says)


@pytest.mark.usefixtures("new")
def test_another_import_that_does_not_end_is_status_3(
    run: Run, old: Old, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "LOCK_WAIT_S", 0.1)
    old.push("a")
    old.redis.set("dq_import:lock", "another")
    assert run("import", old.url).failed(3) == (
        "another import is working on the old store, or this one was delayed too long; "
        "imported jobs are safe; run the import again to continue"
    )
    assert old.redis.exists("a")


def test_a_new_store_that_is_not_there_is_one_line(
    run: Run, old: Old, monkeypatch: pytest.MonkeyPatch
) -> None:
    old.push("a")
    monkeypatch.setenv("DELAYQUEUE_REDIS_HOST", f"{LOOPBACK}:{free_port()}")
    assert "redis.host = " in run("import", old.url).failed(2)
    assert old.redis.exists("a")


def test_a_running_server_with_an_embedded_store_gets_the_jobs(
    run: Run, old: Old, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = processes.server()
    monkeypatch.setenv("DELAYQUEUE_DATA_DIR", str(server.home / "data"))
    monkeypatch.setenv("DELAYQUEUE_URL", server.url)
    old.push("a")
    assert "imported 1 jobs" in run("import", old.url).out
    monkeypatch.delenv("DELAYQUEUE_DATA_DIR")
    assert "delayed" in run("get", "a").ok()
    server.stop()


def test_an_embedded_store_gets_the_jobs_before_its_server_is_started(
    run: Run, old: Old, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DELAYQUEUE_DATA_DIR", str(tmp_path / "data"))
    old.push("a")
    assert "imported 1 jobs" in run("import", old.url).out
    assert "imported 0 jobs" in run("import", old.url).out
