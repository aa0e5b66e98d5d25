"""/find: jobs by a part of their id or body, in all buckets, a page at a time."""

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


async def test_jobs_are_found_by_message_tag_state_and_due_time(api: Api, topic: str) -> None:
    a, b = (f"{topic}-{name}" for name in "ab")
    c, d = f"{{客户-7}}{topic}-c", f"{{客户-70}}{topic}-d"
    for job_id in (a, b):
        (await api.push(topic=topic, id=job_id, tags=[job_id, "both"], retain=60)).ok()
        assert (await api.pop(topic)).ok()["id"] == job_id
        (await api.call("/bury", {"id": job_id, "message": "no bank"})).ok()
    (await api.push(topic=topic, id=c, delay=3600, tags=["both"], group="客户-7")).ok()
    (await api.push(topic=topic, id=d, body="客户-7", delay=7200, group="客户-70")).ok()
    (await api.call("/kick", {"id": b})).ok()
    assert (await api.pop(topic)).ok()["id"] == b
    (await api.finish(b)).ok()
    due = (await api.get(c)).ok()["due"]
    for asked, ids in (
        ({"message": "bank"}, {a, b}),  # one that has ended, too
        ({"message": "bank", "state": "buried"}, {a}),
        ({"message": "1"}, set()),  # the number of an attempt is no message
        ({"tag": "both"}, {a, b, c}),
        ({"tag": "bot"}, set()),
        ({"tag": "both", "state": "delayed"}, {c}),
        ({"group": "客户-7"}, {c}),
        ({"group": " 客户-70", "state": "delayed"}, {d}),
        ({"group": "客户"}, set()),
        ({"state": "finished"}, {b}),
        ({"start": due, "end": due}, {c}),
        ({"after": due, "before": due + 60}, set()),
        ({"before": due}, {a, b}),
    ):
        assert {job["id"] for job in await found(api, topic=topic, **asked)} == ids, asked
