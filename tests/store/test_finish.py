"""finish and delete: a job that ended never comes back."""

import pytest

from delayqueue.errors import Code
from delayqueue.store.verbs import DISCARD, Discard
from tests.store.bucket import HOUR_MS, LATER_MS, STATES, Bucket, a_moment, job, later

ENDINGS = {"finish": "finished", "delete": "cancelled"}


@pytest.fixture(params=[*ENDINGS])
def verb(request: pytest.FixtureRequest) -> str:
    """finish or delete: they differ in what the kept record says."""
    return str(request.param)


async def end(
    bucket: Bucket, verb: str, *ids: str, nonce: str | None = None, message: str = ""
) -> list[int]:
    codes: list[int] = await getattr(bucket, verb)(*ids, nonce=nonce, message=message)
    return codes


async def test_a_job_that_ended_costs_nothing(bucket: Bucket, verb: str) -> None:
    await bucket.push(job("a", ttr_ms=1, tags=("x",), expire_ms=LATER_MS))
    await bucket.pop_one()
    await end(bucket, verb, "a")
    await later()
    await bucket.tick()
    of_topic = {bucket.key(name).encode() for name in ("removed", "topics")}
    assert set(await bucket.redis.keys()) == of_topic
    assert (await bucket.store.sweep(0, 0, 10)).forgotten == 1
    assert await bucket.redis.keys() == []


async def test_each_job_of_a_batch_has_its_own_code(bucket: Bucket, verb: str) -> None:
    await bucket.push(*(job(f"job-{n}") for n in range(1499)))
    assert await end(bucket, verb, *(f"job-{n}" for n in range(1499))) == [Code.OK] * 1499
    await bucket.tick()
    assert await bucket.pop() == []


async def test_an_id_twice_in_one_batch_ends_once(bucket: Bucket, verb: str) -> None:
    await bucket.push(job("a"), job("b"))
    assert await end(bucket, verb, "a", "a") == [Code.OK, Code.OK]
    assert (await bucket.counts()).ready == 1
    nonce = (await bucket.pop_one()).nonce
    assert await end(bucket, verb, "b", "b", nonce=nonce) == [Code.OK, Code.NO_SUCH_JOB]


@pytest.mark.parametrize("state", STATES)
async def test_a_record_is_kept_where_it_was_asked_for(
    bucket: Bucket, verb: str, state: str
) -> None:
    await bucket.put_in(state, body="x", retain_ms=HOUR_MS, tags=("x",), expire_ms=HOUR_MS)
    before_ms = await bucket.now_ms()
    await end(bucket, verb, "a", message="well done")
    view = await bucket.view("a")
    assert (view.state, view.body, view.message) == (ENDINGS[verb], b"x", "well done")
    assert view.tags == ("x",)
    assert view.ended_ms is not None
    assert before_ms <= view.ended_ms <= await bucket.now_ms()
    assert await bucket.pop() == []


async def test_a_kept_record_has_the_story_of_all_attempts(bucket: Bucket, verb: str) -> None:
    await bucket.push(job("a", ttr_ms=1, retain_ms=HOUR_MS))
    await bucket.pop_one()
    await a_moment()
    await bucket.tick()
    await bucket.pop_one()
    await end(bucket, verb, "a")
    view = await bucket.view("a")
    assert (view.attempt, [note.message for note in view.attempts]) == (2, ["ttr expired"])


async def test_ending_a_job_again_leaves_its_kept_record_as_it_is(
    bucket: Bucket, verb: str
) -> None:
    await bucket.push(job("a", retain_ms=HOUR_MS))
    await bucket.finish("a", message="first")
    assert await end(bucket, verb, "a", message="second") == [Code.OK]
    view = await bucket.view("a")
    assert (view.state, view.message) == ("finished", "first")


async def test_what_is_ended_for_nobody_is_the_job_of_that_push(bucket: Bucket) -> None:
    await bucket.push(job("a", retain_ms=HOUR_MS))
    first = await bucket.view("a")
    await bucket.push(job("a", body="new"))
    assert await discard(bucket, first.created_ms) == Code.NO_SUCH_JOB
    held = await bucket.pop_one()
    assert await discard(bucket, held.created_ms) == Code.WRONG_STATE
    assert await discard(bucket, first.created_ms) == Code.NO_SUCH_JOB
    await bucket.requeue(held)
    assert await discard(bucket, held.created_ms) == Code.OK


async def discard(bucket: Bucket, created_ms: int) -> int:
    [code] = await bucket.store.all_of(DISCARD, [Discard("a", created_ms)])
    return code
