"""Rows whose jobs have a group, with several buckets: a group is in one, and an id begins with it in braces."""

from typing import Final

import pytest

from delayqueue import outbox as helpers
from delayqueue.client import Job
from tests.processes import Processes, QueueServer, StoreServer
from tests.relay.conftest import Outbox, unchecked

GROUP: Final = "customer-7"
RIGHT: Final = "id: with several buckets the id of a job begins with its group in braces, like {}"


@pytest.fixture(scope="module")
def server(processes: Processes, redis_server: StoreServer) -> QueueServer:
    return processes.server(redis_server, strict="yes", bucket_size=3, language="en")


def groups(outbox: Outbox) -> dict[str, str]:
    """The groups of the topic's jobs, by their ids."""
    return {job.id: job.group for job in outbox.client.list_jobs(outbox.topic).jobs}


def test_an_id_that_is_made_begins_with_the_group(outbox: Outbox) -> None:
    named = [f"{outbox.topic}-{n}" for n in range(4)]
    for group in named:
        outbox.insert(id="*", options={"group": f" {group}"})
    connection = outbox.database.connect()
    made = [
        helpers.push(connection, Job(topic=outbox.topic, group=group), table=outbox.table)
        for group in named
    ]
    connection.commit()
    connection.close()
    assert outbox.once().returncode == 0
    found = groups(outbox)
    assert {*made} < {*found}
    assert sorted(found.values()) == sorted(2 * named)
    assert all(job_id.startswith(f"{{{group}}}") for job_id, group in found.items())


def test_an_id_elsewhere_is_refused_once_and_the_reason_names_the_right_one(
    outbox: Outbox,
) -> None:
    wrong, right = outbox.topic, f"{{{GROUP}}}{outbox.topic}"
    outbox.insert(id=wrong, options={"group": GROUP})
    outbox.insert(id=f"{outbox.topic}-2")
    for failed in (1, 0):
        assert outbox.once().returncode == failed
        assert outbox.rows("id, failed") == [(wrong, RIGHT.format(right))]
    assert groups(outbox) == {f"{outbox.topic}-2": ""}
    outbox.database.execute(f"UPDATE {outbox.table} SET id = %s, failed = NULL", right)
    assert outbox.once().returncode == 0
    assert groups(outbox)[right] == GROUP


@pytest.mark.parametrize(
    ("group", "says"),
    [
        *((group, "group") for group in ("}a", "", " ", ["a"], "x" * 251)),
        # a table of MariaDB holds 255 characters of an id that begins with it, a text of PostgreSQL no \\0
        *((group, f"like {{{group}}}"[:200].replace("\0", "\\0")) for group in ("x" * 250, "a\0b")),
    ],
)
def test_a_group_that_its_job_cannot_have_fails_and_stops_no_other(
    outbox: Outbox, group: object, says: str
) -> None:
    unchecked(outbox)
    outbox.insert(id="*", options={"group": group})
    outbox.insert(id=outbox.topic)
    outbox.once()
    assert outbox.state(outbox.topic) == "ready"
    reasons, found = outbox.rows("failed"), groups(outbox)
    assert len(reasons) + len(found) == 2
    assert says != "group" or len(reasons) == 1
    assert all(says in reason for reason in reasons)
