"""Priorities over HTTP."""

import pytest

from tests.api.conftest import ONE_BUCKET
from tests.api_client import Api


@pytest.mark.parametrize("server", [ONE_BUCKET], indirect=True)
async def test_an_urgent_job_overtakes_the_others(api: Api, topic: str) -> None:
    for name, asked in (("usual", {}), ("late", {"priority": 2000}), ("urgent", {"priority": 0})):
        (await api.push(topic=topic, id=f"{topic}-{name}", **asked)).ok()
    jobs = (await api.pop(topic, count=3)).ok()
    assert [job["id"].rpartition("-")[2] for job in jobs] == ["urgent", "usual", "late"]
    known = (await api.call("/get", {"ids": [job["id"] for job in jobs]})).ok()
    assert [job["priority"] for job in known] == [0, 1024, 2000]
