"""The programs in examples/worker, with real workers on a real server; and their own tests."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from sqlite3 import connect
from typing import Final

import pytest

from delayqueue import Client
from tests.partner import Answer, Partner
from tests.processes import REPOSITORY, QueueServer
from tests.waiting import until

from .markdown import run, running

FOLDER: Final = REPOSITORY / "examples/worker"
PYTHON: Final = [sys.executable, "-B"]


class Example:
    """One program: its commands, and its worker."""

    def __init__(self, name: str, server: QueueServer, home: Path, **variables: str) -> None:
        self._name = name
        self._out = home / "out"
        self._database = home / "shop.db"
        own = {"DELAYQUEUE_URL": server.url, "SHOP": str(self._database)}
        self._environment = os.environ | own | variables

    def __call__(self, *arguments: str) -> str:
        """What a command of it prints. It must succeed."""
        command = [*PYTHON, str(FOLDER / f"{self._name}.py"), *arguments]
        return run(command, environment=self._environment)

    @contextmanager
    def worker(self) -> Iterator[None]:
        """Run its worker meanwhile, as its first lines say; it must end properly."""
        command = [*PYTHON, "-m", "delayqueue", "worker", f"{self._name}:worker"]
        with running(command, FOLDER, self._environment, self._out):
            yield

    def said(self) -> str:
        """The output and the log of its worker."""
        return self._out.read_text("utf-8")

    def ids(self, table: str) -> list[str]:
        """The ids of the rows that it has written."""
        with closing(connect(self._database)) as database:
            return [found for (found,) in database.execute(f"SELECT id FROM {table}")]


@pytest.fixture(scope="module")
def queue(server: QueueServer) -> Iterator[Client]:
    with Client(server.url) as client:
        yield client


async def test_an_order_is_closed_unless_it_is_paid_in_time(
    server: QueueServer, queue: Client, tmp_path: Path
) -> None:
    orders = Example("order_timeout", server, tmp_path, UNPAID_S="0.5")
    orders("place", "1001")
    orders("place", "1002")
    orders("pay", "1002")
    assert [job.body for job in queue.list_jobs("order-timeout").jobs] == ["1001"]
    assert orders("show", "1001") == "unpaid\n"
    with orders.worker():
        await until(lambda: "closed order 1001" in orders.said())
    assert [orders("show", order) for order in ("1001", "1002")] == ["closed\n", "paid\n"]


async def test_a_person_is_reminded_until_the_appointment_is_off(
    server: QueueServer, queue: Client, tmp_path: Path
) -> None:
    reminders = Example("reminders", server, tmp_path)
    time = datetime.now().astimezone() + timedelta(days=1, minutes=1)
    reminders("book", "Ann", "555-0100", time.isoformat())
    jobs = sorted(queue.list_jobs(tag="appointment:Ann").jobs, key=lambda job: job.due)
    assert [time.timestamp() - job.due for job in jobs] == pytest.approx([86400, 7200, 600])
    queue.kick(jobs[0].id)  # a minute is over
    with reminders.worker():
        await until(lambda: "to 555-0100: Ann, see you tomorrow" in reminders.said())
    later = (time + timedelta(days=1)).isoformat()
    assert reminders("move", "Ann", "555-0100", later) == "reminders cancelled: 2\n"
    assert reminders("cancel", "Ann") == "reminders cancelled: 3\n"


def has_failed(queue: Client, job_id: str, attempt: int) -> bool:
    job = queue.get(job_id)
    return job is not None and [each.attempt for each in job.attempts][-1:] == [attempt]


async def test_a_merchant_is_told_until_it_says_success(
    server: QueueServer, queue: Client, tmp_path: Path
) -> None:
    notifications = Example("payment_notification", server, tmp_path)
    with Partner(Answer(200, "fail"), Answer(500, "oops"), Answer(200, "success")) as merchant:
        notifications("push", "T1", merchant.url)
        with notifications.worker():
            for attempt, wait_s in ((1, 120), (2, 600)):
                await until(partial(has_failed, queue, "payment-T1", attempt))
                waiting = queue.get("payment-T1")
                assert waiting is not None
                assert waiting.due - waiting.attempts[-1].ended == pytest.approx(wait_s, abs=1)
                queue.reschedule(waiting.id, by=-wait_s)  # as if it was over
            await until(lambda: notifications("show", "T1").startswith("finished\n"))
    assert notifications("show", "T1").splitlines()[1:] == [
        "  attempt 1: NotAccepted: 200 fail",
        "  attempt 2: NotAccepted: 500 oops",
    ]
    assert merchant.received == ["trade_no=T1&trade_status=TRADE_SUCCESS"] * 3


async def test_a_merchant_that_asks_for_it_is_given_time(
    server: QueueServer, queue: Client, tmp_path: Path
) -> None:
    notifications = Example("payment_notification", server, tmp_path)
    busy = Answer(503, "busy", {"Retry-After": "1800"})
    with Partner(busy) as merchant, notifications.worker():
        notifications("push", "T2", merchant.url)
        await until(lambda: "the merchant asks to wait" in notifications("show", "T2"))
    job = queue.get("payment-T2")
    assert job is not None
    assert job.due - job.attempts[0].ended == pytest.approx(1800, abs=1)


async def test_what_follows_a_payment_happens_in_order_and_once(
    server: QueueServer, queue: Client, tmp_path: Path
) -> None:
    orders = Example("fan_out", server, tmp_path, RETRY=",".join(["200ms"] * 60))
    orders("paid", "1001", "tea", "ann@example.org")
    with orders.worker():
        await until(lambda: "OutOfStock: tea" in orders.said())
        assert (orders.ids("invoices"), orders.ids("mails")) == (["1001"], [])
        orders("stock", "tea", "1")
        await until(lambda: queue.get("paid-1001") is None)
    assert [orders.ids(table) for table in ("invoices", "parcels", "mails")] == [["1001"]] * 3
    assert "paid-1001 took " in orders.said()


async def test_a_paid_order_runs_its_four_handlers_in_order(
    server: QueueServer, queue: Client, tmp_path: Path
) -> None:
    folder = tmp_path / "invoices"
    retry = ",".join(["200ms"] * 60)
    orders = Example("order_invoice", server, tmp_path, RETRY=retry, INVOICES=str(folder))
    orders("paid", json.dumps({"order": 1001, "items": {"tea": 500, "cup": 1250}}))

    def message() -> str:
        job = queue.get("invoice-1001")
        assert job is not None
        return job.message

    with orders.worker():
        await until(lambda: message().startswith("mail_invoice: FileNotFoundError"))
        assert (folder / "1001.archive").read_text() == "write_invoice\nprint_invoice"
        (folder / "1001.address").write_text("a@example.com")
        await until(lambda: "sent to a@example.com; 3 of 3 done" in message())
    assert (folder / "1001.txt").read_text() == "Invoice I-1001: 17.50\n"


def test_their_own_tests_pass_without_a_server() -> None:
    command = [*PYTHON, "-m", "pytest", "-p", "no:cacheprovider", str(FOLDER)]
    assert " passed in " in run(command)
