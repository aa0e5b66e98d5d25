"""A client that is confined to some topics: for it jobs of other topics do not exist, whatever the verb."""

from functools import partial
from typing import Any, Final

import pytest

from delayqueue.domain.access import Scope
from delayqueue.errors import Code
from delayqueue.store.types import Moved, Plan
from delayqueue.store.verbs import Burial, Ending, Kick, Release, Reschedule, Touch
from tests.scopes import SCOPES
from tests.store.bucket import HOUR_MS, STATES, Bucket, job

OURS: Final = Scope.of(["ours*"])


class Confined:
    """A bucket's verbs, to a client that reaches topics that begin with `ours`."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    def __getattr__(self, verb: str) -> Any:
        return partial(getattr(self._bucket.store, verb), scope=OURS)


@pytest.fixture
def confined(bucket: Bucket) -> Confined:
    return Confined(bucket)


@pytest.mark.parametrize(("entries", "topic", "allowed"), SCOPES)
async def test_the_scripts_decide_as_python_does(
    bucket: Bucket, entries: tuple[str, ...], topic: str, *, allowed: bool
) -> None:
    await bucket.push(job("a", topic=topic))
    (view,) = await bucket.store.get(0, ["a"], Scope.of(entries))
    assert (view is not None) is allowed


@pytest.mark.parametrize("state", STATES)
async def test_a_hidden_job_is_unknown_and_unchanged(
    bucket: Bucket, confined: Confined, state: str
) -> None:
    await bucket.put_in(state, topic="theirs")
    before = await bucket.view("a")
    assert await confined.get(0, ["a"]) == [None]
    assert (await confined.finish(0, [Ending("a", None, "")]))[0] == [Code.OK]
    assert (await confined.finish(0, [Ending("a", "x-1", "")]))[0] == [Code.NO_SUCH_JOB]
    assert (await confined.delete(0, [Ending("a", None, "")]))[0] == [Code.OK]
    assert (await confined.bury(0, [Burial("a", None, "")]))[0] == [Code.NO_SUCH_JOB]
    assert (await confined.release(0, [Release("a", None, 0, "")]))[0] == UNKNOWN
    assert await confined.touch(0, [Touch("a", None, None)]) == UNKNOWN
    assert (await confined.reschedule(0, [Reschedule("a", Plan(HOUR_MS))]))[0] == UNKNOWN
    assert (await confined.kick(0, [Kick("a")]))[0] == [Code.NO_SUCH_JOB]
    assert await bucket.view("a") == before


UNKNOWN: Final = [Moved(Code.NO_SUCH_JOB, None)]


@pytest.mark.parametrize("if_exists", ["replace", "fail", "keep"])
@pytest.mark.parametrize("state", STATES)
async def test_a_push_does_not_replace_a_hidden_job(
    bucket: Bucket, confined: Confined, state: str, if_exists: str
) -> None:
    await bucket.put_in(state, topic="theirs")
    before = await bucket.view("a")
    pushed = await confined.push(0, [job("a", topic="ours", if_exists=if_exists)])
    assert pushed.codes == [Code.JOB_EXISTS]
    assert await bucket.view("a") == before


async def test_the_kept_record_of_a_hidden_job_stays_hidden(
    bucket: Bucket, confined: Confined
) -> None:
    await bucket.push(job("a", topic="theirs", retain_ms=HOUR_MS))
    await bucket.store.finish(0, [Ending("a", None, "")])
    assert await confined.get(0, ["a"]) == [None]
    assert (await confined.push(0, [job("a", topic="ours")])).codes == [Code.JOB_EXISTS]
    assert (await bucket.view("a")).topic == "theirs"


@pytest.mark.parametrize("state", STATES)
async def test_a_job_within_reach_is_like_any_other(
    bucket: Bucket, confined: Confined, state: str
) -> None:
    await bucket.put_in(state, topic="ours.x")
    assert await confined.get(0, ["a"]) == [await bucket.view("a")]
    assert (await confined.push(0, [job("a", topic="ours.y")])).codes == [Code.OK]
    assert (await bucket.view("a")).topic == "ours.y"
    assert (await confined.finish(0, [Ending("a", None, "")]))[0] == [Code.OK]
    assert await bucket.store.get(0, ["a"]) == [None]
