"""A topic with max_jobs, over HTTP and through a config file."""

from tests.api_client import Api

FULL = 11
ENGLISH = {"Accept-Language": "en"}


async def test_a_push_to_a_full_topic_is_refused_with_a_code_of_its_own(
    api: Api, topic: str
) -> None:
    """With several buckets, each has its share."""
    most = 10
    buckets = int((await api.call("/stats", {})).ok()["settings"]["bucket_size"])
    share = most // buckets
    told = ("topic full: 10 jobs", "topic已满：10个job")
    if share < most:
        told = (
            f"topic full in the job's bucket: {share} of 10 jobs",
            f"topic在此job的桶中已满：10个job中的{share}个",
        )
    (await api.call("/limit", {"topic": topic, "max_jobs": most})).ok()
    jobs = [{"topic": topic, "id": f"{topic}/{n}", "delay": 60, "ttr": 60} for n in range(300)]
    outcomes = (await api.call("/push", jobs, ENGLISH)).ok()
    added = [one["id"] for one in outcomes if one["code"] == 0]
    assert len(added) == most
    assert {one["code"] for one in outcomes} == {0, FULL}
    refused = [one["id"] for one in outcomes if one["message"] == told[0]]
    again = next(job for job in jobs if job["id"] in refused)
    for headers, message in zip((ENGLISH, {}), told, strict=True):
        answer = await api.call("/push", again, headers)
        assert (answer.status, answer.code, answer.message) == (200, FULL, message)
    replaced = next(job for job in jobs if job["id"] in added)
    (await api.call("/push", replaced)).ok()
    (await api.call("/limit", {"topic": topic, "max_jobs": None})).ok()
    (await api.call("/push", again)).ok()


async def test_max_jobs_is_told_only_where_it_is_set(api: Api, topic: str) -> None:
    limits = {"max_jobs": 10_000, "when_full": "drop_oldest"}
    told = (await api.call("/limit", {"topic": topic} | limits)).ok()
    assert told | limits == told
    (await api.push(topic=topic, id=topic, delay=60)).ok()
    [counts] = (await api.call("/topics", {"topics": [topic]})).ok()
    assert counts["limit"] | limits == counts["limit"]
    told = (await api.call("/limit", {"topic": topic, "max_jobs": None})).ok()
    assert told.keys() & limits.keys() == set()
    refused = await api.call("/limit", {"topic": topic, "when_full": "drop_oldest"}, ENGLISH)
    assert refused.refused() == "when_full: needs max_jobs"


async def test_a_job_of_a_schedule_that_is_pushed_now_is_a_push(
    ordered_api: Api, topic: str
) -> None:
    """At its times it is not: tests/store/test_max_jobs.py."""
    api = ordered_api
    (await api.call("/schedule", {"name": topic, "topic": topic, "every": "1d"})).ok()
    (await api.call("/limit", {"topic": topic, "max_jobs": 1})).ok()
    (await api.push(topic=topic, id=topic, delay=60)).ok()
    answer = await api.call("/run-schedule", {"name": topic}, ENGLISH)
    assert (answer.code, answer.message) == (FULL, "topic full: 1 job")
    (await api.delete(topic)).ok()
    (await api.call("/run-schedule", {"name": topic})).ok()
    (await api.call("/unschedule", {"name": topic})).ok()
