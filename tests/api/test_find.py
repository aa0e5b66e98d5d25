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
        ({"tag": "both", "limit": 1}, {a, b, c}),
        ({"tag": "bot"}, set()),
        ({"tag": "both", "state": "delayed"}, {c}),
        ({"group": "客户-7"}, {c}),
        ({"group": " 客户-70", "state": "delayed"}, {d}),
        ({"group": "客户"}, set()),
        ({"state": "finished"}, {b}),
        ({"text": "客户-7"}, {d}),  # not its group
        ({"start": due, "end": due}, {c}),
        ({"after": due, "before": due + 60}, set()),
        ({"before": due}, {a, b}),
    ):
        assert {job["id"] for job in await found(api, topic=topic, **asked)} == ids, asked
