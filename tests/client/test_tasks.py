"""Tasks: functions that are pushed with their arguments, and those with times of their own."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, assert_type

import pytest

from delayqueue import AsyncClient, Client, Worker
from delayqueue.testing import Buried, Finished, Released
from delayqueue.worker import ReservedJob, current_context, current_job
from delayqueue.worker.timetable import declare
from tests.client.conftest import RecordingClient, at_work, shop
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from delayqueue.client import Schedule
    from delayqueue.worker import Task
    from tests.processes import QueueServer


@dataclass
class Order:
    id: str
    cents: int


def closing(worker: Worker) -> Task[str, Order, date, str]:
    @worker.task("order-close", ttr=30)
    def close(order: Order, day: date, note: str = "unpaid") -> str:
        """Close an order."""
        return f"{order.id} {order.cents + 1} {day.isoformat()} {note}"

    return close


def test_a_task_runs_with_the_arguments_that_were_pushed() -> None:
    worker, queue = shop()
    close = closing(worker)
    job_id = close.push(
        Order("1001", 420), date(2026, 11, 24), "late", delay="30m", id="order-1001"
    )
    assert_type(job_id, str)
    assert job_id == "order-1001"
    pushed = queue.get("order-1001")
    assert pushed is not None
    assert pushed.ttr == 30
    assert json.loads(pushed.body) == {
        "order": {"id": "1001", "cents": 420},
        "day": "2026-11-24",
        "note": "late",
    }
    assert queue.advance("29m") == []
    [ran] = queue.advance("1m")
    assert ran.verdict == Finished("1001 421 2026-11-24 late")


def test_a_task_is_still_its_function() -> None:
    close = closing(Worker())
    assert_type(close(Order("1", 2), date(2026, 1, 2), "now"), str)
    assert close(Order("1", 2), date(2026, 1, 2), "now") == "1 3 2026-01-02 now"
    assert close.__doc__ == "Close an order."


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        (
            '{"order": {"id": "1", "cents": 2}, "day": "2026-01-02"}',
            Finished("1 3 2026-01-02 unpaid"),
        ),
        (
            '{"order": {"id": "1", "cents": 2}, "day": "2026-01-02", "later": 1}',
            Finished("1 3 2026-01-02 unpaid"),
        ),
        ('{"day": "2026-01-02"}', Buried("order: Field required")),
        ('{"order": {"id": "1"}, "day": "2026-01-02"}', Buried("order.cents: Field required")),
    ],
)
def test_other_languages_push_tasks_too(body: str, verdict: Finished | Buried) -> None:
    worker, queue = shop()
    closing(worker)
    queue.push("order-close", body)
    [ran] = queue.advance()
    assert type(ran.verdict) is type(verdict)
    assert ran.verdict.message.endswith(verdict.message)


def test_a_task_tells_the_group_of_its_jobs_from_their_arguments() -> None:
    worker, queue = shop()

    @worker.task("order-close", group=lambda note, order: note or order.id)
    def close(order: Order, day: date, note: str) -> None:
        """Close an order."""

    @worker.task("mail", group=lambda customer: customer)
    def mail(to: str, customer: int | None) -> None:
        """Send a mail."""

    @worker.task("call", group=lambda customer: customer)
    def call(number: str, customer: str = "customer-1") -> None:
        """Call a customer."""

    order, day = Order("customer-7", 420), date(2026, 11, 24)
    pushed = [
        close.push(order, day, "", id="1"),
        close.push(order, day, "customer-8", id="2"),
        close.push(order, day, "", group="customer-9", id="3"),
        mail.push("a", 7, id="4"),
        mail.push("a", None, id="5"),
        call.push("112", id="6"),  # type: ignore[call-arg]
    ]
    pushed += [str(one.id) for one in close.push_many([(order, day, ""), (order, day, "b")])]
    groups = [job.group for job in map(queue.get, pushed) if job is not None]
    assert groups[:6] == ["customer-7", "customer-8", "customer-9", "7", "", "customer-1"]
    assert groups[6:] == ["customer-7", "b"]


def test_a_group_that_is_none_or_names_no_argument_is_refused() -> None:
    worker, queue = shop()
    with pytest.raises(ValueError, match="close: it has no argument customer"):

        @worker.task("order-close", group=lambda customer: customer)
        def close(order: str) -> None:
            """Close an order."""

    @worker.task("mail", group=lambda to: [to])  # type: ignore[arg-type,return-value]
    def mail(to: str) -> None:
        """Send a mail."""

    with pytest.raises(TypeError, match="mail: the group is a list, must be a text, an integer"):
        mail.push("a")
    assert queue.advance() == []


@pytest.mark.parametrize(("keeps", "tags"), [(False, ["own"]), (True, ["own", "order:1"])])
def test_a_push_from_a_handler_has_the_tags_of_its_job_if_the_worker_keeps_them(
    keeps: bool, tags: list[str]
) -> None:
    worker, queue = shop()
    worker.keep_tags = keeps

    @worker.task("mail")
    def mail(to: str) -> None:
        """Send a mail."""

    @worker.task("order")
    def order(to: str) -> None:
        mail.push(to, tags=["own"], delay=60, id=f"mail-{to}")

    order.push("a", tags=["order:1", "own"])
    mail.push("b", tags=["own"], delay=60, id="mail-b")
    [ran] = queue.advance()
    assert ran.verdict == Finished("")
    pushed, other = queue.get("mail-a"), queue.get("mail-b")
    assert pushed is not None
    assert other is not None
    assert (list(pushed.tags), list(other.tags)) == (tags, ["own"])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('{"count": 2, "names": []}', ""),
        ('{"count": 2.5, "names": []}', "count: it is a float"),
        ('{"count": true, "names": []}', "count: it is a bool"),
        ('{"names": []}', "count: Field required"),
        ("[]", "it is a list"),
        ("", "count: Field required"),
        ("{", "Expecting property name"),
    ],
)
def test_plain_arguments_need_no_pydantic(
    body: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pydantic", None)
    worker, queue = shop()

    @worker.task("plain")
    async def plain(count: int, names: list[Any], share: float = 1, more: Any = None) -> str:
        return f"{count + share} {names}"

    queue.push("plain", body)
    [ran] = queue.advance()
    if reason:
        assert isinstance(ran.verdict, Buried)
        assert reason in ran.verdict.message
    else:
        assert ran.verdict == Finished("3 []")
    with pytest.raises(ValueError, match="pip install pydantic"):
        closing(worker)


def test_many_are_pushed_and_those_of_a_tag_are_cancelled() -> None:
    worker, queue = shop()
    close = closing(worker)
    rows = [(Order(str(number), number), date(2026, 1, 2), "x") for number in range(3)]
    outcomes = close.push_many(rows, tags=["shop:7"], delay=60)
    assert [outcome.code for outcome in outcomes] == [0, 0, 0]
    queue.push("another", tags=["shop:7"])
    assert close.cancel("shop:7") == 3
    assert queue.advance("2m") == []


def test_many_have_all_the_tags_of_a_generator() -> None:
    worker, queue = shop()
    close = closing(worker)
    rows = [(Order(str(number), number), date(2026, 1, 2), "x") for number in range(2)]
    close.push_many(rows, tags=(tag for tag in ("a", "b")))
    assert [ran.job.tags for ran in queue.advance()] == [("a", "b")] * 2


async def test_many_are_not_pushed_under_one_id() -> None:
    """Only the last one would be there, and the outcomes would say that all are."""
    worker, queue = shop()
    close = closing(worker)
    rows = [(Order(str(number), number), date(2026, 1, 2), "x") for number in range(2)]
    with pytest.raises(
        ValueError, match=r"order-close: 2 jobs cannot have one id, close-1; .*job\("
    ):
        close.push_many(rows, id="close-1")
    with pytest.raises(ValueError, match="close-1"):
        await close.push_many_async(rows, id="close-1")
    assert [one.code for one in close.push_many(rows[:1], id="close-1")] == [0]
    assert [one.code for one in close.push_many(rows, id="*")] == [0, 0]
    assert len(await queue.aadvance()) == 3


def test_threads_that_push_first_at_the_same_time_share_a_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class SlowlyMade(Client):
        def __init__(self, *args: Any, **options: Any) -> None:
            time.sleep(0.02)
            super().__init__(*args, **options)

    monkeypatch.setattr("delayqueue.worker.worker.Client", SlowlyMade)
    worker = Worker()
    with ThreadPoolExecutor(8) as threads:
        clients = list(threads.map(lambda _: worker.client, range(8)))
    assert {*map(id, clients)} == {id(worker.client)}


async def test_a_task_is_pushed_from_a_loop() -> None:
    worker, queue = shop()
    close = closing(worker)
    arguments = Order("1", 2), date(2026, 1, 2), "x"
    await close.push_async(*arguments, tags=["a"])
    await close.push_many_async([arguments], tags=["b"])
    assert await close.cancel_async("a") == 1
    assert [ran.verdict for ran in await queue.aadvance()] == [Finished("1 3 2026-01-02 x")]


@pytest.mark.parametrize(
    "wrong", [lambda *_names: None, lambda **_names: None, lambda *, _name: None]
)
def test_what_is_not_given_in_order_is_refused(wrong: Callable[..., None]) -> None:
    with pytest.raises(ValueError, match="cannot be pushed"):
        Worker().task("wrong")(wrong)


def test_a_wrong_number_of_arguments_is_an_error_of_the_caller() -> None:
    worker, queue = shop()
    close = closing(worker)
    push: Any = close.push
    with pytest.raises(TypeError, match="missing a required argument: 'day'"):
        push(Order("1", 2))
    assert queue.advance() == []


# what a failure means


@pytest.mark.parametrize(
    ("error", "verdict"), [(ValueError, Buried), (KeyError, Released), (OSError, Buried)]
)
def test_errors_that_would_come_again_bury_the_job(
    error: type[Exception], verdict: type[Buried | Released]
) -> None:
    worker, queue = shop()

    @worker.on("topic", bury_on=ValueError, retry_on=(LookupError, ValueError))
    def handler(_: ReservedJob) -> None:
        raise error("why")

    queue.push("topic")
    [ran] = queue.advance()
    assert type(ran.verdict) is verdict
    assert ran.verdict.message.startswith(f"{error.__name__}: ")
    assert "handler" in ran.verdict.traceback


async def test_a_time_limit_is_no_error_of_the_handler() -> None:
    worker, queue = shop()

    @worker.task("slow", timeout=0.01, retry_on=())
    async def slow() -> None:
        await asyncio.sleep(60)

    await slow.push_async()
    [ran] = await queue.aadvance()
    assert isinstance(ran.verdict, Released)


def test_a_handler_knows_its_job_and_the_context_wherever_it_is() -> None:
    worker, queue = shop()

    def deep() -> str:
        return f"{current_job().id} {current_context()}"

    @worker.lifespan
    async def opened() -> AsyncGenerator[str, None]:
        yield "database"

    @worker.task("plain")
    def plain() -> str:
        return deep()

    @worker.task("asynchronous")
    async def asynchronous() -> str:
        return deep()

    plain.push(id="a")
    asynchronous.push(id="b")
    assert [ran.verdict.message for ran in queue.advance()] == ["a database", "b database"]
    with pytest.raises(LookupError):
        current_job()


# tasks with times of their own


def timed(topic: str, server: QueueServer, **times: Any) -> Worker:
    """A worker with one such task."""
    worker = Worker(server.url)

    @worker.task(topic, ttr=30, **times)
    def nightly(days: int = 1) -> None:
        pass

    return worker


def schedule_of(queue: Client, topic: str) -> Schedule | None:
    return next(iter(queue.schedules(topic)), None)


async def work_until(worker: Worker, condition: Callable[[], bool]) -> None:
    """Run it until then."""
    async with at_work(worker):
        await until(condition)


async def test_the_schedule_on_the_server_follows_the_code(server: QueueServer, topic: str) -> None:
    with Client(server.url) as queue:
        worker = timed(topic, server, cron="30 9 * * MON-FRI", tz="Asia/Shanghai")
        await work_until(worker, lambda: schedule_of(queue, topic) is not None)
        made = schedule_of(queue, topic)
        assert made is not None
        assert (made.name, made.cron, made.tz) == (
            f"task:{topic}",
            "30 9 * * MON-FRI",
            "Asia/Shanghai",
        )
        assert (made.body, made.ttr, made.paused) == ("{}", 30, False)

        worker = timed(topic, server, every="2h")
        await work_until(worker, lambda: getattr(schedule_of(queue, topic), "every", None) == 7200)

        worker = timed(topic, server, every="2h", group=lambda days: days)
        await work_until(worker, lambda: getattr(schedule_of(queue, topic), "group", "") == "1")
        queue.unschedule(f"task:{topic}")


async def test_a_restart_does_not_put_off_what_is_due(
    server: QueueServer, queue: AsyncClient, topic: str
) -> None:
    worker = timed(topic, server, every="2h")
    await declare(queue, worker.times, prune=False)
    [first] = await queue.schedules(topic)
    await declare(queue, worker.times, prune=False)
    [again] = await queue.schedules(topic)
    assert again.next == first.next
    await queue.unschedule(f"task:{topic}")


async def test_a_task_without_a_zone_is_pushed_by_utc_again(
    server: QueueServer, queue: AsyncClient, topic: str
) -> None:
    cron = "30 9 * * MON-FRI"
    await declare(queue, timed(topic, server, cron=cron, tz="Asia/Shanghai").times, prune=False)
    await declare(queue, timed(topic, server, cron=cron).times, prune=False)
    [changed] = await queue.schedules(topic)
    assert changed.tz == "UTC"
    await queue.unschedule(f"task:{topic}")


@pytest.mark.parametrize("times", [{"every": 600.0004}, {"every": "2h", "group": lambda: " a "}])
async def test_a_schedule_as_the_server_writes_it_is_not_made_anew(
    server: QueueServer, topic: str, times: dict[str, Any]
) -> None:
    """The server counts in milliseconds, and leaves out white space around names."""
    worker = timed(topic, server, **times)
    async with RecordingClient(server.url) as client:
        await declare(client, worker.times, prune=False)
        await declare(client, worker.times, prune=False)
        assert [one.path for one in client.sent].count("/schedule") == 1
        await client.unschedule(f"task:{topic}")


async def test_a_task_that_an_operator_has_paused_stays_paused(
    server: QueueServer, queue: AsyncClient, topic: str
) -> None:
    await declare(queue, timed(topic, server, every="2h").times, prune=False)
    await queue.schedule(
        f"task:{topic}", topic, {}, every="2h", ttr=30, paused=True, if_exists="replace"
    )
    await declare(queue, timed(topic, server, every="3h").times, prune=False)
    [changed] = await queue.schedules(topic)
    assert (changed.every, changed.paused) == (3 * 3600, True)
    await queue.unschedule(f"task:{topic}")


async def test_only_prune_removes_what_the_code_no_longer_declares(
    server: QueueServer, queue: AsyncClient, topic: str
) -> None:
    await declare(queue, timed(topic, server, every="2h").times, prune=False)
    await queue.schedule(topic, topic, every="2h")  # by hand
    await declare(queue, [], prune=False)
    assert {one.name for one in await queue.schedules(topic)} == {topic, f"task:{topic}"}
    await declare(queue, [], prune=True)
    assert {one.name for one in await queue.schedules(topic)} == {topic}
    await queue.unschedule(topic)


async def test_two_workers_may_prune_at_once(
    server: QueueServer, queue: AsyncClient, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What another one has removed meanwhile is gone, and the rest is removed, too."""
    names = [f"task:{topic}-{number}" for number in range(2)]
    for name in names:
        await queue.schedule(name, topic, every="2h")

    class Other(AsyncClient):
        async def unschedule(self, name: str) -> None:
            if name == names[0]:
                await queue.unschedule(name)
            await super().unschedule(name)

    async with Other(server.url) as client:
        await declare(client, [], prune=True)
    assert await queue.schedules(topic) == []
    assert "not as declared" not in caplog.text


async def test_a_worker_without_such_tasks_asks_for_no_schedules() -> None:
    async with AsyncClient("http://127.0.0.1:1", retries=0) as nobody:
        await asyncio.wait_for(declare(nobody, [], prune=False), timeout=10)


def test_a_task_with_times_needs_no_arguments() -> None:
    with pytest.raises(ValueError, match="without arguments"):

        @Worker().task("topic", every="2h")
        def wrong(days: int) -> None:
            pass


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ({"cron": "61 * * * *"}, "topic: Bad minute"),
        ({"cron": "0 9 * * *", "every": "1d"}, "topic: give one of cron, every"),
        ({"every": "1d", "tz": "Asia/Shanghai"}, "topic: tz: is only for cron"),
        ({"cron": "0 9 * * *", "tz": "Mars"}, "topic: must be a time zone such as Asia/Shanghai"),
    ],
)
def test_times_that_no_server_could_serve_are_refused_where_they_are_written(
    times: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Worker().task("topic", **times)


async def test_a_schedule_that_the_server_refuses_does_not_keep_others_from_being_made(
    server: QueueServer, queue: AsyncClient, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cronsim", None)  # the client alone cannot tell
    wrong = timed(f"{topic}-wrong", server, cron="61 * * * *")
    right = timed(topic, server, every="2h")
    await declare(queue, [*wrong.times, *right.times], prune=False)
    assert [one.name for one in await queue.schedules(topic)] == [f"task:{topic}"]
    await queue.unschedule(f"task:{topic}")
