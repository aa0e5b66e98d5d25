"""Every verb of both clients, when the server has carried it out and its answer is lost."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from delayqueue.client import Job, JobExists, TransportError, calls
from faults.proxy import Proxy
from tests.client.conftest import Caller
from tests.client.every_verb import CALLS, WEBHOOK, Scene

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from delayqueue.client import AsyncClient, Client
    from tests.processes import QueueServer


@pytest.fixture
async def proxy(server: QueueServer) -> AsyncIterator[Proxy]:
    async with Proxy(server.port) as running:
        yield running


@pytest.fixture
async def client(
    kind: type[Client | AsyncClient], proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Caller]:
    """Through the proxy; it repeats at once."""
    monkeypatch.setattr(calls, "FIRST_PAUSE_S", 0.0)
    caller = Caller(kind(f"http://{proxy.address}"))
    yield caller
    await caller.close()


@pytest.fixture
async def scene(client: Caller, topic: str) -> AsyncIterator[Scene]:
    await client.push(topic)
    held = await client.pop(topic, wait=5)
    delayed = await client.push(topic, delay=600, tags=[topic])
    await client.schedule(topic, topic, every=3600)
    await client.subscribe(topic, f"{topic}-calls", WEBHOOK)
    yield Scene(topic, held, delayed)
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
    assert len(await client.pop_many(topic, count=9, wait=5)) == 3
