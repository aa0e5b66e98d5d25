"""Bringing jobs into a state, over HTTP, and proving that a topic has nothing to give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.api_client import push_due_in
from tests.waiting import until_async

if TYPE_CHECKING:
    from tests.api_client import Api

STATES = ("delayed", "ready", "reserved")


async def until_ready(api: Api, *ids: str) -> None:
    """Wait until all these jobs are ready."""

    async def all_ready() -> bool:
        jobs = (await api.call("/get", {"ids": ids})).ok()
        return all(job["state"] == "ready" for job in jobs)

    await until_async(all_ready)


async def push_into(api: Api, state: str, **job: Any) -> None:
    """Push a job and wait until it is in `state`. A delayed one is due in an hour, unless the job says."""
    if state == "delayed":
        (await api.push(**{"delay": 3600} | job)).ok()
        return
    (await api.push(**job)).ok()
    await until_ready(api, job["id"])
    if state == "reserved":
        assert (await api.pop(job["topic"])).ok()["id"] == job["id"]


async def assert_nothing_comes(api: Api, topic: str, *, within_s: float) -> None:
    """Prove that `topic` delivers nothing within that time: a later job comes first, and nothing after it."""
    sentinel = await push_due_in(api, within_s, topic=topic, id=f"{topic}/sentinel")
    assert (await api.pop(topic, timeout=within_s + 10)).ok()["id"] == sentinel.id
    assert (await api.pop(topic, timeout=0)).ok() is None
    (await api.finish(sentinel.id)).ok()
