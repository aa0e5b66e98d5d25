"""delayqueue.contrib.celery: with a queue and a broker in memory, and with real workers on Redis."""

import base64
import os
import pickle
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path
from subprocess import Popen
from typing import Any, Final, Self

import pytest

pytest.importorskip("celery")  # `make lint` has none

import redis
from celery import Celery, chain, group
from kombu import Exchange
from kombu.exceptions import OperationalError

from delayqueue import Client
from delayqueue.contrib.celery import install
from delayqueue.testing import Buried, Finished, Queue, Released
from tests.processes import REPOSITORY, QueueServer, StoreServer, free_port
from tests.waiting import until

HOUR_S: Final = 3600
STOP_S: Final = 120.0
ALONE: Final = ("--without-gossip", "--without-mingle", "--without-heartbeat")
WORKER: Final = ("celery", "-A", "tests.client.celery_app", "worker", "--pool", "solo", *ALONE)
RELAY: Final = ("delayqueue", "worker", "tests.client.celery_app:relay")


class Shop:
    """An app whose broker and queue are in memory."""

    def __init__(self, **options: Any) -> None:
        self.app = Celery(
            "shop", broker="memory://", backend="cache+memory://", set_as_current=False
        )
        self.relay = install(self.app, **options)
        self.queue = self.relay.client = Queue(self.relay)
        self.close = self.app.task(name="close")(_close)

    def sent(self, queue: str = "celery") -> list[Any]:
        """The messages that have reached the broker."""
        with self.app.connection_for_read() as connection:
            waiting = connection.SimpleQueue(queue)
            return [waiting.get(block=False) for _ in range(waiting.qsize())]


def _close(order: str) -> str:
    return order


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setitem(sys.modules, "pydantic", None)  # the extra does without
    shop = Shop()
    shop.sent()  # all apps of a process have one memory
    return shop


def test_a_task_waits_in_the_queue_until_it_is_due(shop: Shop) -> None:
    result = shop.close.apply_async(("1001",), countdown=HOUR_S)
    assert shop.queue.advance("59m") == []
    assert shop.sent() == []
    [ran] = shop.queue.advance("1m")
    assert (ran.job.id, ran.verdict) == (result.id, Finished())
    [message] = shop.sent()
    assert message.headers["id"] == message.properties["correlation_id"] == result.id
    assert message.headers["eta"] is None
    assert message.payload[:2] == [["1001"], {}]


@pytest.mark.parametrize("when", [{}, {"countdown": 59}, {"countdown": -1}])
def test_a_task_that_is_due_soon_goes_to_the_broker_at_once(
    shop: Shop, when: dict[str, Any]
) -> None:
    result = shop.close.apply_async(("1001",), **when)
    assert [message.headers["id"] for message in shop.sent()] == [result.id]
    assert shop.queue.get(result.id) is None


def test_it_keeps_its_options(shop: Shop) -> None:
    due = shop.app.now() + timedelta(days=400)  # more than a delay may be
    expires = due + timedelta(days=300)
    shop.close.apply_async(
        ("1001",),
        eta=due.replace(tzinfo=None),  # UTC, as for Celery
        expires=expires,
        queue="slow",
        priority=3,
        headers={"shop": "7"},
        link=shop.close.s("1002"),
        shadow="closing",
        time_limit=30,
    )
    assert shop.queue.advance((due - shop.app.now()).total_seconds() + 1)
    [message] = shop.sent("slow")
    assert message.properties["priority"] == 3
    assert {
        name: message.headers[name] for name in ("task", "shop", "shadow", "timelimit", "expires")
    } == {
        "task": "close",
        "shop": "7",
        "shadow": "closing",
        "timelimit": [30, None],
        "expires": expires.isoformat(),
    }
    assert [each["args"] for each in message.payload[2]["callbacks"]] == [["1002"]]


def test_chains_and_groups_wait_too(shop: Shop) -> None:
    chain(shop.close.si("1"), shop.close.si("2").set(countdown=2 * HOUR_S)).apply_async(
        countdown=HOUR_S
    )
    group(shop.close.si("3"), shop.close.si("4")).apply_async(countdown=HOUR_S)
    assert shop.sent() == []
    shop.queue.advance("1h")
    chains = {message.payload[0][0]: message.payload[2]["chain"] for message in shop.sent()}
    assert chains.keys() == {"1", "3", "4"}
    [then] = chains["1"]  # the worker sends it, and it waits again
    assert then["options"]["countdown"] == 2 * HOUR_S


def test_the_body_stays_as_its_serializer_made_it(shop: Shop) -> None:
    result = shop.close.apply_async(({1001},), countdown=HOUR_S, serializer="pickle")
    [ran] = shop.queue.advance("1h")
    assert ran.job.id == result.id
    [message] = shop.sent()
    assert message.content_type == "application/x-python-serialize"
    body = message.body if isinstance(message.body, bytes) else base64.b64decode(message.body)
    assert pickle.loads(body)[0] == ({1001},)


def test_a_revoked_task_leaves_the_queue(shop: Shop) -> None:
    results = [shop.close.apply_async((number,), countdown=HOUR_S) for number in ("1", "2", "3")]
    results[0].revoke()
    shop.app.control.revoke([results[1].id, "nobody's"])
    assert [result.state for result in results] == ["REVOKED", "REVOKED", "PENDING"]
    assert [ran.job.id for ran in shop.queue.advance("1h")] == [results[2].id]


@pytest.mark.parametrize("state", ["STARTED", "RETRY", "FAILURE", "SUCCESS"])
def test_to_revoke_a_task_that_does_not_wait_leaves_its_state_to_the_workers(
    shop: Shop, state: str
) -> None:
    result = shop.close.apply_async(("1001",))  # no eta: it is the workers'
    error = ValueError("declined")
    shop.app.backend.store_result(
        result.id, error if state in {"RETRY", "FAILURE"} else None, state
    )
    shop.queue.push("other", id=result.id, delay=HOUR_S)  # of another program
    result.revoke()
    assert result.state == state
    assert shop.queue.get(result.id) is not None


def test_while_the_broker_is_away_nothing_is_lost() -> None:
    shop = Shop()
    shop.app.conf.broker_url = f"redis://127.0.0.1:{free_port()}"
    shop.app.conf.task_ignore_result = True
    shop.app.conf.task_publish_retry_policy = {"max_retries": 1, "interval_start": 0}
    shop.close.apply_async(("1001",), countdown=HOUR_S)
    verdicts = [ran.verdict for ran in shop.queue.advance("70m")]
    assert len(verdicts) > 10
    assert all(isinstance(verdict, Released) for verdict in verdicts)


def test_a_job_that_cannot_be_sent_is_a_dead_letter(shop: Shop) -> None:
    shop.app.conf.task_create_missing_queues = False
    shop.close.apply_async(("1001",), countdown=HOUR_S)
    shop.queue.push("celery", {"task": "close"})
    body = {"task": "close", "payload": "", "properties": {"content_encoding": "utf-8"}}
    shop.queue.push(
        "celery", body | {"headers": {}, "event": {}, "options": {"queue": "not-of-this-app"}}
    )
    assert [type(ran.verdict) for ran in shop.queue.advance("1h")] == [Buried, Buried, Finished]


def test_a_queue_that_cannot_be_reached_is_a_broker_that_cannot() -> None:
    app = Celery("shop", broker="memory://", set_as_current=False)
    relay = install(app)
    relay.client = Client(f"http://127.0.0.1:{free_port()}", retries=0)
    with pytest.raises(OperationalError):
        app.send_task("close", countdown=HOUR_S)
    with pytest.raises(OperationalError):
        app.control.revoke("1001")
    app.send_task("close")


def test_rabbitmq_delays_in_quorum_queues_by_itself(shop: Shop) -> None:
    shop.app.send_task("close", countdown=HOUR_S, exchange=Exchange("celery_delayed_27", "topic"))
    assert shop.queue.advance("1h") == []


@contextmanager
def running(
    command: tuple[str, ...], folder: Path, environ: dict[str, str]
) -> Iterator[Popen[bytes]]:
    """A Python program in this folder, which it logs into; it is killed at the end."""
    with (
        (folder / "log").open("ab") as log,
        Popen(
            [sys.executable, "-m", *command],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(REPOSITORY)} | environ,
            stderr=log,
            stdout=log,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


class Scene:
    """A worker of Celery, its broker, and what it ran."""

    def __init__(self, server: QueueServer, store: StoreServer, folder: Path, beyond: str) -> None:
        database = store.new_database()
        self.folder = folder
        self.broker = redis.Redis(port=store.port, db=database)
        self.environ = {
            "BROKER": f"redis://{store.address}/{database}",
            "DELAYQUEUE_URL": server.url,
            "TOPIC": folder.name,
            "BEYOND": beyond,
        }
        self.app = Celery("shop", broker=self.environ["BROKER"], set_as_current=False)
        self.relay = install(self.app, server.url, topic=folder.name, beyond=beyond)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.app.close()
        self.relay.client.close()
        self.broker.close()

    def running(self, *command: str, **environ: str) -> AbstractContextManager[Popen[bytes]]:
        return running(command, self.folder, self.environ | environ)

    def runs(self) -> Counter[tuple[str, int]]:
        """How often each task ran, by its id and the number of its retries."""
        file = self.folder / "runs"
        lines = file.read_text("ascii").splitlines() if file.exists() else []
        return Counter((task_id, int(retries)) for task_id, retries in map(str.split, lines))

    def broker_is_empty(self) -> bool:
        return not self.broker.exists("celery", "unacked", "unacked_index")

    def queue_is_empty(self) -> bool:
        return not self.relay.client.list_jobs(self.folder.name).jobs


async def test_a_task_beyond_the_visibility_timeout_runs_once_and_so_does_its_retry(
    server: QueueServer, redis_server: StoreServer, tmp_path: Path
) -> None:
    with Scene(server, redis_server, tmp_path, "1s") as scene:
        ids = [scene.app.send_task("close", args, countdown=3).id for args in ([], [3])]
        assert scene.broker_is_empty()
        once = {(ids[0], 0): 1, (ids[1], 0): 1, (ids[1], 1): 1}
        with scene.running(*WORKER), scene.running(*RELAY):
            await until(lambda: len(scene.runs()) == len(once))
            await until(lambda: scene.broker_is_empty() and scene.queue_is_empty())
        assert scene.runs() == once


async def test_a_relay_that_dies_before_it_finishes_sends_the_task_again_with_its_id(
    server: QueueServer,
    redis_server: StoreServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("delayqueue.contrib.celery.TTR_S", 3)
    with Scene(server, redis_server, tmp_path, "1s") as scene, scene.running(*WORKER):
        task_id = scene.app.send_task("close", countdown=2).id
        with scene.running(*RELAY, DIES="yes") as relay:
            assert relay.wait(STOP_S) == -signal.SIGKILL
        with scene.running(*RELAY):
            await until(scene.queue_is_empty)
            # a slow relay may miss the TTR once more
            await until(
                lambda: scene.runs().keys() == {(task_id, 0)} and scene.runs()[task_id, 0] > 1
            )
