"""The queue in memory, whose clock the test turns, and the fixtures of pytest."""

from dataclasses import dataclass

import pytest

from delayqueue import Bury, Retry, Worker
from delayqueue.client import Client, Job, JobExists
from delayqueue.testing import Buried, Finished, Queue, Released
from delayqueue.testing.plugin import delay_queue, delay_queue_url  # noqa: F401  # fixtures
from delayqueue.worker import ReservedJob


@dataclass
class Order:
    id: str


@pytest.fixture
def queue(delay_queue: Queue) -> Queue:  # noqa: F811
    worker = Worker()

    @worker.on("close")
    def close(order: Order) -> str:
        return f"closed {order.id}"

    @worker.on("remind", retry=["10m", "20m"])
    def remind(job: ReservedJob) -> None:
        match job.body:
            case "bury":
                raise Bury("no use")
            case "later":
                raise Retry("5m" if job.attempt == 1 else 0, "later")
            case "once":
                delay_queue.push("remind", "bury", delay="1m")
            case _:
                raise ValueError("no")

    delay_queue.add(worker)
    return delay_queue


def test_a_job_is_handled_when_the_clock_has_come_to_it(queue: Queue) -> None:
    job_id = queue.push("close", Order("1001"), delay="30m", retain="1d")
    queue.push("nobody", "waits for it")
    assert queue.advance("29m") == []
    details = queue.get(job_id)
    assert details
    assert details.state == "delayed"
    assert details.due - queue.now_s == pytest.approx(60)
    [ran] = queue.advance("1m")
    assert (ran.job.id, ran.verdict) == (job_id, Finished("closed 1001"))
    details = queue.get(job_id)
    assert details
    assert (details.state, details.message) == ("finished", "closed 1001")


@pytest.mark.parametrize(
    ("body", "retry", "verdicts"),
    [
        (
            "no",
            None,
            [Released("ValueError: no"), Released("ValueError: no"), Buried("ValueError: no")],
        ),
        ("no", ["1s"], [Released("ValueError: no"), Buried("ValueError: no")]),
        ("bury", None, [Buried("no use")]),
        ("later", None, [Released("later", 300), Released("later", 0), Buried("later")]),
    ],
)
def test_a_job_that_fails_comes_again_as_it_would(
    queue: Queue, body: str, retry: list[str] | None, verdicts: list[object]
) -> None:
    job_id = queue.push("remind", body, retry=retry)
    assert [ran.verdict for ran in queue.advance("1d")] == verdicts
    details = queue.get(job_id)
    assert details
    assert (details.state, details.attempt) == ("buried", len(verdicts))
    queue.kick(job_id, body="bury")
    again = queue.advance()[0].job
    assert (again.attempt, again.body) == (len(verdicts) + 1, "bury")
    queue.push("remind", body, id="moved", retry=retry)
    queue.advance("1d")
    queue.reschedule("moved", delay=0)
    assert len(queue.advance("1d")) == len(verdicts)


def test_jobs_are_handled_in_the_order_of_their_times(queue: Queue) -> None:
    began_s = queue.now_s
    queue.push("remind", "no", delay=5)  # again after 10 and 30 minutes
    queue.push("remind", "once", delay=1)  # pushes another one, for a minute later
    ran = queue.advance("35m")
    assert [(round(one.job.due - began_s), one.job.body) for one in ran] == [
        *[(1, "once"), (5, "no"), (61, "bury")],
        *[(605, "no"), (1805, "no")],
    ]


def test_what_is_not_wanted_any_more_is_not_handled(queue: Queue) -> None:
    job_id = queue.push("close", {"id": "1"}, delay=1, tags=["order:1"])
    assert queue.cancel("order:1") == 1
    assert queue.get(job_id) is None
    queue.delete(job_id)
    queue.push("close", {"id": "2"}, id="two", delay=1)
    with pytest.raises(JobExists):
        queue.push("close", {"id": "3"}, id="two", if_exists="fail")
    assert [one.code for one in queue.push_many([Job(topic="close", id="two", delay=90)])] == [0]
    assert queue.advance(60) == []
    queue.reschedule("two", delay=0)
    assert [ran.job.id for ran in queue.advance()] == ["two"]


def test_changes_that_never_stop_put_a_job_off_no_longer_than_its_max_wait(queue: Queue) -> None:
    ran = []
    for number in range(20):
        queue.push("close", {"id": str(number)}, id="one", delay="30s", max_wait="1m")
        ran += queue.advance(10)
    assert [one.job.body for one in ran] == ['{"id":"5"}', '{"id":"11"}', '{"id":"17"}']


def test_jobs_are_moved_by_a_distance_or_kicked_by_their_tag_or_topic(queue: Queue) -> None:
    for number in range(3):
        queue.push("close", {"id": str(number)}, id=str(number), delay=60 * number, tags=["x"])
    assert queue.reschedule_tag("x", by="2m", priority=7) == 3
    assert queue.reschedule_tag("x", topic="other", by="2m") == 0
    assert queue.get("0").priority == 7  # type: ignore[union-attr]
    assert [round(each.due - queue.now_s) for each in queue.get_many(["0", "1", "2"]) if each] == [
        120,
        180,
        240,
    ]
    assert queue.reschedule("2", by="-1h") == queue.now_s
    assert [one.code for one in queue.reschedule_many(["1", "none"], by=-60)] == [0, 2]
    assert [ran.job.id for ran in queue.advance()] == ["2"]
    assert queue.kick_topic("close", count=1, state="delayed") == 1
    assert queue.kick_tag("x", state="delayed") == 1
    assert queue.kick_tag("x") == queue.kick_topic("close") == 0
    assert [one.code for one in queue.kick_many(["0", "2"])] == [3, 2]
    assert sorted(ran.job.id for ran in queue.advance()) == ["0", "1"]


async def test_the_same_queue_may_be_awaited(queue: Queue) -> None:
    await queue.asynchronous.push("close", Order("1"), delay=1)
    assert [ran.verdict for ran in await queue.aadvance(1)] == [Finished("closed 1")]


def test_what_it_cannot_do_it_says(queue: Queue) -> None:
    with pytest.raises(NotImplementedError, match="/forecast"):
        queue.forecast(start=0, end=1)


def test_a_real_server_is_a_fixture(delay_queue_url: str) -> None:  # noqa: F811
    with Client(delay_queue_url) as client:
        job_id = client.push("fixture", Order("1001"))
        job = client.pop("fixture", wait=20)
        assert job
        assert job.id == job_id
        client.finish(job)
