"""/kick of many: each job has an answer of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.api_client import INVALID

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.api_client import Api


async def test_each_of_many_ids_has_its_own_result(api: Api, name: Callable[[str], str]) -> None:
    topic, delayed, ready = name("topic"), name("delayed"), name("ready")
    await api.push(topic=topic, id=delayed, delay=60)
    await api.push(topic=topic, id=ready)
    kicked = (await api.call("/kick", {"ids": [delayed, ready, "unknown"]})).ok()
    results = [(delayed, 0), (ready, 3), ("unknown", 2)]
    assert kicked == {
        "count": 1,
        "results": [{"id": job_id, "code": code} for job_id, code in results],
    }
    assert (await api.call("/kick", {"topic": topic})).ok() == {"count": 0}


async def test_a_bad_element_of_an_array_is_named_in_the_words_of_json(api: Api) -> None:
    (outcome,) = (await api.call("/push", [5])).ok()
    assert outcome["code"] == INVALID
    assert "an object" in outcome["message"]
    assert "PushRequest" not in outcome["message"]


async def test_a_step_that_is_too_short_is_named(api: Api) -> None:
    asked = {"start": 0, "end": 10, "step": 0.0001}
    message = (await api.call("/forecast", asked)).refused(INVALID)
    assert "step" in message
    assert "start" not in message
