"""Jobs of groups go back to a server that knows no groups, and come forward again: none is lost."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from delayqueue.client import Client, Job, ReservedJob
from delayqueue.errors import Invalid, Unavailable
from tests.earlier import LIVE_MOVES, NoSuchCommit, let_run, program_of
from tests.processes import (
    ProcessError,
    Processes,
    QueueServer,
    StoreServer,
    environment,
    run_program,
)
from tests.waiting import wait_until

TOPIC: Final = "order"
GROUPS: Final = ("customer-1", "customer-2", "customer-3")
# of each group: the first one is in hand or waits for its retry, the last one is delayed
JOBS: Final = 5
LOST: Final = "is in no index: it would never be delivered: mended"  # what the earlier fsck says of ready ones
IN_BRACES: Final = "{{{}}}/{}"
BUCKETS: Final = 3
TTR_S: Final = 600
WAIT_S: Final = 20.0


def _answers(queue: Client) -> bool:
    try:
        queue.topics(TOPIC)
    except Unavailable:
        return False
    return True


class Versions:
    """One store, and servers of today and of the earlier version on it."""

    def __init__(self, processes: Processes, store: StoreServer, program: Path) -> None:
        self._processes = processes
        self._settings: dict[str, object] = store.settings(store.new_database())
        self._program = program

    def server(self, *, of_today: bool) -> QueueServer:
        server = QueueServer("server", self._processes.home("server"), self._settings)
        return self._processes.started(server if of_today else let_run(server, self._program))

    def set_buckets(self, number: int) -> None:
        """The number of buckets that those who begin from now on are told."""
        self._settings["bucket_size"] = number

    def rebalance(self, number: int, server: QueueServer) -> None:
        """Change the number of buckets with today's program, once the earlier server is thought to be gone.

        Returns when `server`, which runs on it, goes on.
        """
        until_s = time.monotonic() + 2 * WAIT_S
        while True:
            done = run_program("rebalance", "--buckets", str(number), settings=self._settings)
            if "servers of an older version" not in done.stderr or time.monotonic() > until_s:
                break
        assert not done.returncode, done.stderr
        self.set_buckets(number)
        with Client(server.url) as queue:
            while not _answers(queue):
                assert time.monotonic() < until_s, server.log_tail()
                time.sleep(0.1)

    def assert_earlier_refuses(self) -> None:
        """The earlier version does not start on the data."""
        with pytest.raises(ProcessError, match="version = 1, but the data in this store was made"):
            self.server(of_today=False)

    def earlier_fsck(self) -> str:
        """What the earlier version's `fsck --repair` prints."""
        done = subprocess.run(
            [sys.executable, "-m", "delayqueue", "fsck", "--repair"],
            cwd=self._program,
            env=environment(self._settings) | {"PYTHONPATH": str(self._program)},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr

    def fsck(self) -> str:
        return run_program("fsck", "--repair", settings=self._settings).stdout


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The earlier version, which is compiled once."""
    try:
        return program_of(LIVE_MOVES, tmp_path_factory.mktemp("earlier") / "program")
    except NoSuchCommit as error:
        pytest.skip(str(error))


@pytest.fixture
def versions(processes: Processes, redis_server: StoreServer, program: Path) -> Versions:
    return Versions(processes, redis_server, program)


def fill(queue: Client, name: str = "{}/{}") -> set[str]:
    """Push the jobs of groups in strict order. Returns their ids, which are made of group and number."""
    queue.limit(TOPIC, group_order=True)
    jobs = [
        Job(
            topic=TOPIC,
            id=name.format(group, number),
            group=group,
            ttr=TTR_S,
            delay=1 if number == JOBS - 1 else 0,
        )
        for group in GROUPS
        for number in range(JOBS)
    ]
    assert not [each for each in queue.push_many(jobs) if each.code]
    held: list[ReservedJob] = []
    while {job.group for job in held} != {*GROUPS}:  # a pop may bring those of one bucket
        held += queue.pop_many(TOPIC, count=len(jobs))
    queue.release(held[0], delay=1, message="not yet")
    for job in held[1:]:
        queue.touch(job, ttr=1)
    return {job.id for job in jobs if job.id is not None}


def worked(queue: Client, ids: set[str]) -> list[str]:
    """The ids in the order of their deliveries, each finished, until all have come."""
    found: list[str] = []
    until_s = time.monotonic() + WAIT_S
    while ids - {*found} and time.monotonic() < until_s:
        for job in queue.pop_many(TOPIC, count=3, wait=1):
            found.append(job.id)
            queue.finish(job)
    return found


def until_all_are_ready(queue: Client) -> None:
    """Wait until delays and TTRs are over."""

    def are_ready() -> bool:
        (counts,) = queue.topics(TOPIC)
        return not counts.delayed and not counts.reserved

    wait_until(are_ready, within_s=WAIT_S)


def test_an_earlier_server_delivers_the_jobs_of_groups_without_groups_and_loses_none(
    versions: Versions,
) -> None:
    today = versions.server(of_today=True)
    with Client(today.url) as queue:
        ids = fill(queue)
    assert today.stop() == 0
    assert versions.earlier_fsck().count(LOST) >= len(GROUPS) * (JOBS - 2)
    earlier = versions.server(of_today=False)
    with Client(earlier.url) as queue:
        assert sorted(worked(queue, ids)) == sorted(ids)
        (counts,) = queue.topics(TOPIC)
    assert (counts.delayed, counts.ready, counts.reserved, counts.buried) == (0, 0, 0, 0)


def test_servers_of_both_versions_together_deliver_the_jobs_of_groups(versions: Versions) -> None:
    servers = [versions.server(of_today=of_today) for of_today in (True, False)]
    with Client(servers[0].url) as today, Client(servers[1].url) as earlier:
        ids = fill(today)
        found: set[str] = set()
        until_s = time.monotonic() + WAIT_S
        while ids - found and time.monotonic() < until_s:
            for queue in (earlier, today):
                for job in queue.pop_many(TOPIC, count=3, wait=0.5):
                    found.add(job.id)
                    queue.finish(job)
        assert found == ids


def test_what_an_earlier_server_left_has_its_turns_and_limits_again(versions: Versions) -> None:
    today = versions.server(of_today=True)
    with Client(today.url) as queue:
        ids = fill(queue)
    assert today.stop() == 0
    versions.earlier_fsck()
    earlier = versions.server(of_today=False)
    with Client(earlier.url) as queue:
        first = queue.pop(TOPIC, wait=5)
        assert first is not None
        queue.finish(first)
        queue.push(TOPIC, "without a group", id="another")
    assert earlier.stop() == 0
    today = versions.server(of_today=True)
    with Client(today.url) as queue:
        queue.push(TOPIC, id="customer-1/new", group="customer-1")
        left = ids - {first.id} | {"another", "customer-1/new"}
        until_all_are_ready(queue)
        held = queue.pop_many(TOPIC, count=100, wait=0)
        assert len([job for job in held if job.group]) == len(
            {job.group for job in held if job.group}
        )
        for job in held:
            queue.finish(job)
        left -= {job.id for job in held}
        assert sorted(worked(queue, left)) == sorted(left)
        versions.fsck()
    assert "all is whole" in versions.fsck()


def test_jobs_of_groups_go_back_from_several_buckets_by_way_of_one(versions: Versions) -> None:
    versions.set_buckets(BUCKETS)
    today = versions.server(of_today=True)
    with Client(today.url) as queue:
        ids = fill(queue, IN_BRACES)
    versions.assert_earlier_refuses()
    versions.rebalance(1, today)
    with Client(today.url) as queue:  # it goes on, as with any change of the buckets
        another = queue.push(TOPIC, group=GROUPS[0])
    assert today.stop() == 0
    assert LOST in versions.earlier_fsck()
    earlier = versions.server(of_today=False)
    with Client(earlier.url) as queue:
        assert sorted(worked(queue, {*ids, another})) == sorted({*ids, another})
        (counts,) = queue.topics(TOPIC)
    assert (counts.delayed, counts.ready, counts.reserved, counts.buried) == (0, 0, 0, 0)


def test_several_buckets_of_an_earlier_server_take_groups_after_a_rebalance(
    versions: Versions,
) -> None:
    """Its ids in braces are in other buckets than what stands in the braces says."""
    versions.set_buckets(BUCKETS)
    older = {f"{{{group}}}older-{number}" for group in GROUPS for number in range(5)}
    earlier = versions.server(of_today=False)
    with Client(earlier.url) as queue:
        queue.push_many(Job(topic=TOPIC, id=job_id) for job_id in older)
    assert earlier.stop() == 0
    today = versions.server(of_today=True)
    with Client(today.url) as queue:
        with pytest.raises(Invalid, match=f"rebalance --buckets {BUCKETS}"):
            queue.push(TOPIC, group=GROUPS[0])
        assert all(queue.get_many(older))
        versions.rebalance(BUCKETS, today)
        assert sorted(worked(queue, older)) == sorted(older)
        ids = fill(queue, IN_BRACES)
        versions.assert_earlier_refuses()
        assert sorted(worked(queue, ids)) == sorted(ids)
    assert today.stop() == 0
    versions.fsck()
    assert "all is whole" in versions.fsck()
