"""Ids that the client makes for jobs of a group: any number of buckets takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delayqueue import Client
from delayqueue.client import Job

if TYPE_CHECKING:
    from tests.processes import Processes, StoreServer


def test_a_job_of_a_group_needs_no_id_with_several_buckets(
    processes: Processes, redis_server: StoreServer, topic: str
) -> None:
    server = processes.server(redis_server, bucket_size=3)
    groups = [f"{topic}-{n}" for n in range(4)]
    with Client(server.url) as queue:
        ids = [queue.push(topic, group=f" {group}") for group in groups]
        assert [job_id.partition("}")[0] for job_id in ids] == [f"{{{group}" for group in groups]
        jobs = [Job(topic=topic, group=group) for group in groups]
        assert [one.code for one in queue.push_many(jobs)] == [0] * len(groups)
        found = queue.get_many([*ids, *(job.id for job in jobs)])
        assert [job.group if job else None for job in found] == groups * 2


def test_an_id_of_ones_own_stays() -> None:
    assert Job(topic="t", id="order-1001", group="customer-7").id == "order-1001"
    assert len({Job(topic="t").id for _ in range(3)}) == 3
