"""/touch with progress, and where it is told."""

from typing import Final

from tests.api_client import Api

SAID: Final = {"progress": 40, "message": "page 4 of 10"}


async def test_the_progress_of_a_job_is_told_by_get_and_list(api: Api, topic: str) -> None:
    (await api.push(topic=topic, id=topic, ttr=60)).ok()
    job = (await api.call("/pop", {"topic": topic, "timeout": 5})).ok()
    held = {"id": topic, "receipt": job["receipt"]}
    assert "progress" not in (await api.call("/get", {"id": topic})).ok()
    assert (await api.call("/touch", held | SAID)).ok().keys() == {"deadline"}
    told = (await api.call("/get", {"id": topic})).ok()["progress"]
    assert told | {"at": 0} == {"percent": 40, "message": "page 4 of 10", "at": 0}
    assert abs(told["at"] - job["due"]) < 600
    [listed] = (await api.call("/list", {"topic": topic, "state": "reserved"})).ok()["jobs"]
    assert listed["progress"] == told
    (await api.call("/touch", held | {"message": "x" * 2000})).ok()
    told = (await api.call("/get", {"id": topic})).ok()["progress"]
    assert (told["percent"], told["message"]) == (40, "x" * 1024)
