"""Every verb of both clients, when the server has carried it out and its answer is lost."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Final

import pytest

from delayqueue.client import (
    AsyncClient,
    Client,
    Job,
    JobExists,
    QueueError,
    TransportError,
    api_request,
)
from delayqueue.client.api_request import ApiRequest
from delayqueue.worker import Task, Worker
from faults.proxy import Proxy
from tests.client.conftest import Caller
from tests.client.every_verb import CALLS, SCENE, WEBHOOK, Asked, Scene

REPEATABLE: Final = [verb for verb, make in CALLS.items() if make(Asked(), SCENE).repeatable]
FIRST_TIME_S: Final = 1_000_000_000  # earlier than any time, and larger than any count


@pytest.fixture
async def client(
    kind: type[Client | AsyncClient], proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Caller]:
    """Through the proxy; it repeats at once."""
    monkeypatch.setattr(api_request, "FIRST_PAUSE_S", 0.0)
    caller = Caller(kind(f"http://{proxy.address}"))
    yield caller
    await caller.close()


@pytest.fixture
async def scene(client: Caller, topic: str) -> AsyncIterator[Scene]:
    await client.push(topic)
    held = await client.pop(topic, wait=20)
    delayed = await client.push(topic, delay=600, tags=[topic])
    later = await client.push(topic, delay=1200, tags=[topic])
    await client.schedule(topic, topic, every=3600)
    await client.subscribe(topic, f"{topic}-calls", WEBHOOK)
    yield Scene(topic, held, delayed, later)
    for end in (client.unschedule, client.unsubscribe):
        for name in (topic, f"{topic}-2"):
            with suppress(Exception):
                await end(name)


@pytest.mark.parametrize("verb", CALLS)
async def test_a_call_whose_answer_was_lost_has_its_own_result_or_none(
    client: Caller, proxy: Proxy, scene: Scene, verb: str
) -> None:
    """No repetition is told what became of the first try as if it were its own fault."""
    proxy.drop_next_answers()
    with suppress(TransportError):  # nobody knows: the honest answer
        result = await CALLS[verb](client, scene)
        if verb.endswith("_many") and verb not in {"pop_many", "get_many"}:
            assert {one.code for one in result} == {0}


async def contents(client: Caller, scene: Scene) -> Any:
    """The scene as the server has it now, with its times to the minute: some begin anew with a second call."""
    jobs = await client.get_many([scene.held.id, scene.delayed, scene.later])
    topics, schedules = await client.topics(scene.topic), await client.schedules()
    found = [*jobs, *topics, *schedules, *await client.subscribers()]
    return about([None if one is None else asdict(one) for one in found])


def about(value: Any) -> Any:
    """Equal to the value, and to others whose times differ by less than a minute."""
    if isinstance(value, dict):
        return {name: about(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(about, value))
    is_time = isinstance(value, float) or (isinstance(value, int) and value > FIRST_TIME_S)
    return pytest.approx(value, abs=60) if is_time else value


@pytest.mark.parametrize("verb", REPEATABLE)
@pytest.mark.parametrize("kind", [Client])  # both make the same call
async def test_a_call_that_may_be_repeated_changes_nothing_the_second_time(
    client: Caller, scene: Scene, verb: str
) -> None:
    asked = CALLS[verb](Asked(), scene)
    request = ApiRequest(asked.path, asked.json, read=repr)
    await client.send(request)
    once = await contents(client, scene)
    with suppress(QueueError):  # it says that this is done already
        await client.send(request)
    assert await contents(client, scene) == once


NEW_JOBS: Final[dict[str, Callable[[Client, str], Any]]] = {
    "push": lambda client, topic: client.push(topic),
    "push of a group": lambda client, topic: client.push(topic, group="a"),
    "push_many of a task": lambda client, topic: task_of(client, topic).push_many([()]),
}


def task_of(client: Client, topic: str) -> Task[None]:
    worker = Worker()
    worker.client = client
    return worker.task(topic)(lambda: None)


@pytest.mark.parametrize("way", NEW_JOBS)
async def test_a_retry_leaves_a_new_job_to_the_worker_that_has_it(
    queue: AsyncClient, topic: str, way: str
) -> None:
    """Nobody else has the id that the client made, so the job is the one of the first try."""
    asked = NEW_JOBS[way](Asked(), topic)
    request = ApiRequest(asked.path, asked.json, read=repr)
    await queue.send(request)
    held = await queue.pop(topic, wait=20)
    assert held is not None
    await queue.send(request)
    assert await queue.pop(topic, wait=0) is None
    await queue.finish(held)  # raises if the worker has lost it
    assert await queue.get(held.id) is None


async def test_a_subscriber_with_jitter_is_not_its_own_rival(
    client: Caller, proxy: Proxy, topic: str
) -> None:
    """The server draws its delays, so the second try would be another subscriber of the name."""
    retry = {"max": 3, "jitter": 0.5}
    await client.topics()
    proxy.drop_next_answers()
    with pytest.raises(TransportError):
        await client.subscribe(topic, topic, WEBHOOK, retry=retry)
    await client.topics()
    proxy.drop_next_answers()
    await client.subscribe(topic, topic, WEBHOOK, retry=retry, if_exists="replace")
    await client.unsubscribe(topic)


@pytest.mark.parametrize("options", [{"id": "mine"}, {"if_exists": "replace"}, {"max_wait": 60}])
def test_a_push_that_may_be_meant_to_replace_is_sent_as_it_is(options: dict[str, Any]) -> None:
    asked: Any = Asked()
    assert asked.push("t", **options).json.get("if_exists") == options.get("if_exists")


async def test_a_new_job_is_pushed_once_alone_or_in_a_batch(
    client: Caller, proxy: Proxy, topic: str
) -> None:
    """With `if_exists="fail"`, a repetition would find the job of the first try."""
    new = Job(topic=topic, if_exists="fail")
    await client.topics()
    proxy.drop_next_answers()
    with pytest.raises(TransportError):
        await client.push_many([Job(topic=topic), new])
    await client.topics()
    proxy.drop_next_answers()
    with pytest.raises(TransportError):
        await client.push(topic, if_exists="fail")
    with pytest.raises(JobExists):
        await client.push(topic, id=new.id, if_exists="fail")
    assert len(await client.pop_many(topic, count=9, wait=20)) == 3


async def test_a_job_whose_id_the_server_makes_is_pushed_once_and_its_id_is_told(
    client: Caller, proxy: Proxy, topic: str
) -> None:
    """Each push of "*" is another job, also a repeated one, or several of one moment."""
    ids = await asyncio.gather(*[client.push(topic, id="*") for _ in range(3)])
    assert "*" not in ids
    assert len({*ids}) == len(ids)
    proxy.drop_next_answers()
    with pytest.raises(TransportError):
        await client.push(topic, id="*")
    await client.topics()
    proxy.drop_next_answers()
    with pytest.raises(TransportError):
        await client.push_many([Job(topic=topic, id="*")])
    assert len(await client.pop_many(topic, count=99, wait=20)) == len(ids) + 2
