"""Items of several jobs, and requests for several buckets."""

from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

import pytest

from delayqueue.domain.access import EVERYWHERE
from delayqueue.errors import Code, Invalid, Unavailable
from delayqueue.store.call import Reply
from delayqueue.store.verbs import GET, PUSH, Verb
from tests.engine.moving import A, B, Installation, source
from tests.store.between import before_send, intercept
from tests.store.bucket import job

MIB: Final = 1 << 20
NAMES: Final = [f"job-{n:03}" for n in range(60)]


def _weights(pairs: Sequence[Any], reply: Reply) -> list[tuple[int, int]]:
    return [(reply.results[2 * at], reply.results[2 * at + 1]) for at in range(len(pairs))]


# a verb whose items name two jobs
WEIGH_TWO: Final = Verb[tuple[str, str], tuple[int, int]](
    "weigh", lambda pairs: list(chain.from_iterable(pairs)), _weights, ids=lambda pair: pair
)


async def test_an_item_can_name_several_jobs_of_a_bucket(ours: Installation) -> None:
    store = ours.server()
    await store.run(PUSH, [job(A), job(B)], EVERYWHERE)
    [(one, other)] = await store.run(WEIGH_TWO, [(A, B)], EVERYWHERE)
    assert one == other > 0


async def test_an_item_whose_jobs_are_in_different_buckets_is_refused(ours: Installation) -> None:
    apart = next(name for name in NAMES if source(name) != source(A))
    store = ours.server()
    with pytest.raises(Invalid):
        await store.run(WEIGH_TWO, [(A, apart)], EVERYWHERE)


async def test_if_no_bucket_answers_a_request_for_several_fails(ours: Installation) -> None:
    store = ours.server()

    intercept(store, lambda _bucket, call, _sends: call.fail(Unavailable()))
    with pytest.raises(Unavailable):
        await store.run(PUSH, [job(name) for name in NAMES], EVERYWHERE)


async def test_what_was_done_before_a_change_is_told(ours: Installation) -> None:
    """A call has got to some jobs of a bucket; those that are left are lost with the change."""
    store = ours.server()
    before_send(store, 3, ours.rebalance)
    jobs = [job(name, body="x" * MIB, if_exists="fail") for name in NAMES[:12]]
    pushed = await store.run(PUSH, jobs, EVERYWHERE)
    assert {each.code for each in pushed} == {Code.OK, Code.UNAVAILABLE}
    there = await ours.server().run(GET, NAMES[:12], EVERYWHERE)
    assert [view is not None for view in there] == [each.code == Code.OK for each in pushed]
