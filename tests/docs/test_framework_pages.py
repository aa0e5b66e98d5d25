"""The pages on FastAPI, Django and Sentry: their programs run on a real server, in a process of their own."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from delayqueue import Client
from tests.processes import QueueServer

from .follow import Follower

FASTAPI: Final = """
from fastapi.testclient import TestClient

from app import app

with TestClient(app) as client:
    for text in ("tea", "more tea"):
        print(client.put("/reminders/7", json={"to": "Ann", "text": text}).status_code)
"""

DJANGO: Final = """
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.db"}},
    INSTALLED_APPS=["shop"],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    USE_TZ=True,
    LOGGING_CONFIG=None,
)
from shop import tasks

from django.core.management import call_command
from django.db import transaction

from delayqueue import testing
from shop import orders
from shop.models import Order

call_command("migrate", run_syncdb=True, verbosity=0)


def pushed():
    return [job.body for job in orders.queue.list_jobs("order-close").jobs]


try:
    with transaction.atomic():
        orders.place("tea")
        assert not pushed()
        raise KeyError
except KeyError:
    print(pushed())

order = orders.place("tea")
print(pushed())
print(testing.run(tasks.worker, "order-close", pushed()[0]).message, Order.objects.get().state)
print(testing.run(tasks.worker, "order-close", pushed()[0]).message)
"""

SENTRY: Final = """
import asyncio

import sentry_sdk
from sentry_sdk.transport import Transport


class Kept(Transport):
    events = []

    def capture_envelope(self, envelope):
        self.events.append(envelope.get_event())


init = sentry_sdk.init
sentry_sdk.init = lambda: init(transport=Kept)
from tasks import worker

from delayqueue import AsyncClient


MAILS = ["mail-0", "mail-1", "mail-2"]


async def main():
    stop = asyncio.Event()
    working = asyncio.create_task(worker.work(stop))
    async with AsyncClient() as queue:
        for mail, address in zip(MAILS, ["nobody", "a@slow.example", "b@example.org"]):
            await queue.push("mail", address, id=mail, retry=["1h"], retain=60)
        while {job.state for job in await queue.get_many(MAILS)} != {"delayed", "finished"}:
            await asyncio.sleep(0.01)
    stop.set()
    await working


asyncio.run(main())
print(len(Kept.events))
for event in Kept.events:
    [error] = event["exception"]["values"]
    print(error["type"], error["value"], event["transaction"], event["tags"], event["contexts"]["job"])
"""


@pytest.fixture
def queue(server: QueueServer) -> Iterator[Client]:
    with Client(server.url) as client:
        yield client


def test_fastapi_pushes_what_the_worker_takes(
    server: QueueServer, queue: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # those of this project's own tests
    reader = Follower(tmp_path, server)
    reader.follow("docs/howto/fastapi.md")
    assert program(reader, FASTAPI) == ["202", "202"]
    [job] = queue.list_jobs("reminder").jobs
    assert (job.id, json.loads(job.body)) == ("reminder-7", {"to": "Ann", "text": "more tea"})


def test_django_pushes_after_the_commit(server: QueueServer, tmp_path: Path) -> None:
    reader = Follower(tmp_path, server)
    reader.follow("docs/howto/django.md")
    assert program(reader, DJANGO) == [
        *("[]", """['{"order":1}']"""),
        *("closed closed", "nothing to close"),
    ]


def test_sentry_hears_of_errors_once_and_of_their_job(
    server: QueueServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENTRY_DSN", "https://key@sentry.example/1")
    reader = Follower(tmp_path, server)
    reader.follow("docs/howto/sentry.md")
    told = (
        "ValueError no address mail {'topic': 'mail', 'domain': ''} {'id': 'mail-0', 'attempt': 1}"
    )
    assert program(reader, SENTRY)[-2:] == ["1", told]


def program(reader: Follower, text: str) -> list[str]:
    """The lines that a program prints, in the folder of the page."""
    return reader.run(f"python -c {shlex.quote(text)}").splitlines()
