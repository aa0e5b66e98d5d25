"""A job is delivered until it is finished or deleted. The states: tests/store/test_finish.py."""

import time
from collections.abc import Callable
from typing import Final

import pytest

from tests.api.jobs import push_into
from tests.api_client import Api

from .conftest import in_one_setup

Name = Callable[[str], str]

pytestmark = in_one_setup

VERBS: Final = ("/finish", "/delete")


async def test_a_job_that_is_not_finished_within_its_ttr_is_delivered_again(
    api: Api, topic: str, name: Name
) -> None:
    job_id = name("id")
    (await api.push(topic=topic, id=job_id, ttr=1, body="again")).ok()
    receipts, earlier_s = set[str](), 0.0
    for attempt in (1, 2, 3):
        asked_s = time.time()
        job = (await api.pop(topic)).ok()
        assert (job["id"], job["body"], job["attempt"]) == (job_id, "again", attempt)
        receipts.add(job["receipt"])
        assert time.time() - earlier_s >= 0.9
        earlier_s = asked_s
    assert len(receipts) == 3


@pytest.mark.parametrize("verb", VERBS)
async def test_a_job_can_be_removed_twice(api: Api, topic: str, name: Name, verb: str) -> None:
    await push_into(api, "ready", topic=topic, id=(job_id := name("id")))
    for _ in range(2):
        assert (await api.call(verb, {"id": job_id})).ok() is None
