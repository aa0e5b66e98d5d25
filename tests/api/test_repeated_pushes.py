"""Pushes that are repeated with an idempotency key, over HTTP."""

from tests.api_client import Api


async def test_a_repeated_push_does_not_bring_back_a_job_that_ended(api: Api, topic: str) -> None:
    job = {"topic": topic, "id": topic, "ttr": 60, "retain": 60, "idempotency_key": "row 7"}
    (await api.call("/push", job)).ok()
    (await api.call("/delete", {"id": topic})).ok()
    (await api.call("/push", job)).ok()
    assert (await api.call("/push", [job])).ok()[0]["code"] == 0
    assert (await api.call("/get", {"id": topic})).ok()["state"] == "cancelled"
    (await api.call("/push", job | {"idempotency_key": "row 8", "if_exists": "keep"})).ok()
    assert (await api.call("/get", {"id": topic})).ok()["state"] == "ready"
