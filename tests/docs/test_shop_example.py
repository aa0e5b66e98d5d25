"""The application in examples/shop, with its API and its worker on a real server; and its own tests."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from delayqueue import Client
from tests.partner import Answer, Partner
from tests.processes import LOOPBACK, REPOSITORY, QueueServer, free_port
from tests.waiting import until

from .markdown import run, running

FOLDER: Final = REPOSITORY / "examples/shop"
PYTHON: Final = [sys.executable, "-B"]


class Shop:
    """The API at `url`, and the worker."""

    def __init__(self, server: QueueServer, home: Path, **variables: str) -> None:
        port = free_port()
        self.url = f"http://{LOOPBACK}:{port}"
        self.out = home / "out"
        self._api = ["-m", "uvicorn", "shop.api:app", "--port", str(port)]
        own = {"DELAYQUEUE_URL": server.url, "SHOP": str(home / "shop.db")}
        self._environment = os.environ | own | variables

    @contextmanager
    def open(self) -> Iterator[None]:
        """Run both meanwhile, as its first lines say; both must end properly."""
        worker = ["-m", "delayqueue", "worker", "shop.tasks:worker"]
        with ExitStack() as programs:
            for command in (self._api, worker):
                programs.enter_context(
                    running([*PYTHON, *command], FOLDER, self._environment, self.out, {0, -15})
                )
            yield

    def ask(self, path: str, **new: object) -> Any:
        """The answer to a POST, or to a GET if there is nothing to send."""
        body = json.dumps(new).encode() if new or path.endswith("/pay") else None
        request = Request(self.url + path, body, {"Content-Type": "application/json"})
        with urlopen(request, timeout=10) as response:
            return json.load(response)


async def test_an_order_is_closed_or_its_payment_told(server: QueueServer, tmp_path: Path) -> None:
    with Partner(Answer(200, "fail"), Answer(200, "success")) as seller:
        shop = Shop(server, tmp_path, SELLER_URL=seller.url)
        with shop.open(), Client(server.url) as queue:
            await until(lambda: "Uvicorn running on" in shop.out.read_text("utf-8"))
            paid, unpaid = (shop.ask("/orders", item="tea", cents=420)["id"] for _ in range(2))
            assert shop.ask(f"/orders/{paid}/pay")["state"] == "paid"
            for order in (paid, unpaid):
                queue.kick(f"timeout-{order}")  # half an hour is over
            await until(lambda: shop.ask(f"/orders/{unpaid}")["state"] == "closed")
            with pytest.raises(HTTPError, match="409"):
                shop.ask(f"/orders/{unpaid}/pay")
            assert shop.ask(f"/orders/{paid}")["state"] == "paid"
            await until(lambda: len(seller.received) == 1)
            await until(lambda: has_failed(queue, f"notice-{paid}"))
            queue.kick(f"notice-{paid}")  # two minutes are over
            await until(lambda: len(seller.received) == 2)
            await until(lambda: queue.get(f"notice-{paid}") is None)
    assert [json.loads(told) for told in seller.received] == [{"order": paid, "cents": 420}] * 2


def has_failed(queue: Client, job_id: str) -> bool:
    """Whether the job waits for its next attempt."""
    job = queue.get(job_id)
    return job is not None and job.state == "delayed"


def test_its_own_tests_pass_without_a_server() -> None:
    command = [*PYTHON, "-m", "pytest", "-p", "no:cacheprovider", str(FOLDER)]
    assert " passed in " in run(command)
