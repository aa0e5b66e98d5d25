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


async def test_a_key_needs_an_id_that_the_repetition_has_too(api: Api, topic: str) -> None:
    """Two equal pushes with "*" are two jobs, whatever their key."""
    job = {"topic": topic, "id": "*", "ttr": 60, "idempotency_key": "row 7"}
    for star in ("*", " * "):
        refused = (await api.call("/push", job | {"id": star})).refused()
        assert refused.startswith("idempotency_key 需要自己的id")
    [of_array] = (await api.call("/push", [job])).ok()
    assert (of_array["id"], of_array["code"]) == ("*", 1)
    assert (await api.call("/list", {"topic": topic})).ok()["jobs"] == []
