"""/find: jobs by a part of their id or body, in all buckets, a page at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.api_client import Api, Json


async def found(api: Api, **asked: object) -> list[Json]:
    """The jobs of all pages."""
    jobs: list[Json] = []
    page: Json = {"cursor": ""}
    while True:
        page = (await api.call("/find", {**asked, "cursor": page["cursor"]})).ok()
        jobs += page["jobs"]
        if not page["cursor"]:
            return jobs


async def test_jobs_are_found_by_a_part_of_their_id_or_body(api: Api, topic: str) -> None:
    ids = [f"{topic}-{number}" for number in range(12)]
    for number, job_id in enumerate(ids):
        (await api.push(topic=topic, id=job_id, body=f"order {number % 2}", delay=60)).ok()
    assert {job["id"] for job in await found(api, topic=topic, id=f"{topic}-1")} == {
        ids[1],
        *ids[10:],
    }
    odd = await found(api, topic=topic, text="order 1", limit=2)
    assert {job["id"] for job in odd} == {*ids[1::2]}
    assert {(job["topic"], job["state"]) for job in odd} == {(topic, "delayed")}
    assert await found(api, topic=topic, text="invoice") == []


async def test_a_search_for_nothing_is_refused(api: Api) -> None:
    assert "id 或 text" in (await api.call("/find", {"topic": "t"})).refused()
