"""A server that may call this machine, a subscribing client, and the receiver of the calls."""

import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import pytest

from tests.api_client import Api, Json, open_api
from tests.processes import Processes, QueueServer, StoreServer
from tests.waiting import PATIENCE_S, until_async

from .receiver import SECRET, Receiver, receiving

STORES: Final = [
    pytest.param(("redis_server", 1, "zset"), id="redis"),
    pytest.param(("valkey_server", 4, "wheel"), id="valkey-4-buckets-wheel"),
]


@dataclass
class Shop:
    """The topic of a test, its server and its receiver."""

    api: Api
    receiver: Receiver
    topic: str

    async def subscribe(self, path: str, **options: Any) -> str:
        """Subscribe a path of the receiver to the topic. Returns the subscriber's name."""
        name = f"{self.topic}/{path}"
        payload = {"name": name, "topic": self.topic, "url": self.receiver.url(path)} | options
        (await self.api.call("/subscribe", payload)).ok()
        return name

    async def push(self, job_id: str = "", **options: Any) -> str:
        """Push a job whose result is kept; returns its id."""
        job_id = job_id or f"{self.topic}-job"
        job: Json = {"topic": self.topic, "id": job_id, "body": "{}", "retain": 3600, "ttr": 10}
        if "due" not in options:
            job["delay"] = 0
        (await self.api.push(**job | options)).ok()
        return job_id

    async def job(self, job_id: str = "") -> Json:
        found: Json = (await self.api.get(job_id or f"{self.topic}-job")).ok()
        return found

    async def becomes(self, state: str, job_id: str = "", *, within_s: float = PATIENCE_S) -> Json:
        """Wait until the job is in that state; returns it."""

        async def is_so() -> bool:
            return bool((await self.job(job_id))["state"] == state)

        await until_async(is_so, within_s=within_s)
        return await self.job(job_id)

    async def seen(self) -> None:
        """Wait until the server knows what was changed of subscribers: a later one of another topic is called."""
        async with receiving() as receiver:
            other = Shop(self.api, receiver, f"{self.topic}-{secrets.token_hex(4)}")
            later = await other.subscribe("later")
            await other.push()
            await other.becomes("finished")
        (await self.api.call("/unsubscribe", {"name": later})).ok()


def results(job: Json) -> dict[str, tuple[str, int, str]]:
    """Status, attempts and message of each subscriber of a job, by the last part of its name."""
    return {
        result["subscriber"].rpartition("/")[2]: (
            result["status"],
            result["attempts"],
            result["message"],
        )
        for result in job["results"]
    }


@pytest.fixture(scope="session")
def serve(
    request: pytest.FixtureRequest, lasting_processes: Processes
) -> Callable[[tuple[str, int, str]], QueueServer]:
    """Gives the server of a store, which is started once: each module goes through all stores."""

    @cache
    def serve(given: tuple[str, int, str]) -> QueueServer:
        store, bucket_size, scheduler = given
        return lasting_processes.server(
            request.getfixturevalue(store),
            bucket_size=bucket_size,
            scheduler=scheduler,
            webhook_allow="127.0.0.1/32",
            calls="yes",
            call_allow="127.0.0.0/8, localhost",
            call_concurrency=2,
            call_secret=SECRET,
            language="en",
        )

    return serve


@pytest.fixture(scope="session", params=STORES)
def server(
    request: pytest.FixtureRequest, serve: Callable[[tuple[str, int, str]], QueueServer]
) -> QueueServer:
    """A running server. Tests share it, so each uses topics and names of its own."""
    return serve(request.param)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as it:
        yield it


@pytest.fixture(scope="module")
def own_server(
    request: pytest.FixtureRequest, processes: Processes, redis_server: StoreServer
) -> QueueServer:
    """A server with the module's CONFIG as its config file."""
    server = processes.configured(request.module.CONFIG, redis_server)
    server.start()
    return server


@pytest.fixture
async def own_api(own_server: QueueServer) -> AsyncIterator[Api]:
    async with open_api(own_server.url) as client:
        yield client


@pytest.fixture
async def api(server: QueueServer) -> AsyncIterator[Api]:
    async with open_api(server.url) as client:
        yield client


@pytest.fixture
async def shop(api: Api, receiver: Receiver, topic: str) -> Shop:
    return Shop(api, receiver, topic)
