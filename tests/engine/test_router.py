"""Items of several jobs, and requests that meet a change of the number of buckets."""

import asyncio
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

import pytest

from delayqueue.domain.access import EVERYWHERE
from delayqueue.engine.rebalance import Rebalance
from delayqueue.errors import Code, Invalid, Unavailable
from delayqueue.store.bucket.replies import Reply
from delayqueue.store.types import Pushed
from delayqueue.store.verbs import FINISH, GET, PUSH, Ending, Verb
from tests.engine.moving import A, B, Installation, before_call, source
from tests.store.bucket import HOUR_MS, job

MIB: Final = 1 << 20
NAMES: Final = [f"job-{n:03}" for n in range(60)]


def _weights(pairs: Sequence[Any], reply: Reply) -> list[tuple[int, int]]:
    return [(reply.results[2 * at], reply.results[2 * at + 1]) for at in range(len(pairs))]


# a verb whose items name two jobs
WEIGH_TWO: Final = Verb[tuple[str, str], tuple[int, int]](
    "weigh", lambda pairs: list(chain.from_iterable(pairs)), _weights, ids=lambda pair: pair
)


async def test_all_jobs_of_an_item_are_fetched_before_it_is_called(ours: Installation) -> None:
    store = ours.server()
    await store.run(PUSH, [job(A), job(B)], EVERYWHERE)
    await ours.begin()
    [(one, other)] = await store.run(WEIGH_TWO, [(A, B)], EVERYWHERE)
    assert one == other > 0
    await ours.finish()


async def test_an_item_whose_jobs_are_in_different_buckets_is_refused(ours: Installation) -> None:
    apart = next(name for name in NAMES if source(name) != source(A))
    store = ours.server()
    with pytest.raises(Invalid):
        await store.run(WEIGH_TWO, [(A, apart)], EVERYWHERE)


async def test_if_no_bucket_answers_a_request_for_several_fails(ours: Installation) -> None:
    store = ours.server()

    def refuse(*_: Any, **__: Any) -> asyncio.Future[Reply]:
        raise Unavailable

    store.by_bucket.caller.call = refuse  # type: ignore[method-assign]
    with pytest.raises(Unavailable):
        await store.run(PUSH, [job(name) for name in NAMES], EVERYWHERE)


async def test_what_was_done_before_a_change_is_not_done_again(ours: Installation) -> None:
    """A call has got to some jobs of a bucket; those that are left are lost with the change."""
    store = ours.server()
    before_call(store.by_bucket.caller, "call", 3, ours.begin)
    jobs = [job(name, body="x" * MIB, if_exists="fail") for name in NAMES[:12]]
    pushed = await store.run(PUSH, jobs, EVERYWHERE)
    assert {each.code for each in pushed} == {Code.OK, Code.UNAVAILABLE}
    await ours.finish()


async def test_no_request_is_lost_while_the_number_of_buckets_changes_again_and_again(
    ours: Installation,
) -> None:
    """Requests wait, are under way and come, for one bucket and for several, at each change of the layout."""
    store = ours.server()
    pushed = await store.run(PUSH, [job(name, delay_ms=HOUR_MS) for name in NAMES], EVERYWHERE)
    assert pushed == [Pushed(Code.OK)] * len(NAMES)
    answers = list[asyncio.Future[Any]]()

    async def ask() -> None:
        for turn in range(120):
            some = NAMES[turn % 7 :: 7] if turn % 3 else [NAMES[turn % len(NAMES)]]
            answers.append(store.run(GET, some, EVERYWHERE))
            if turn % 5 == 0:
                answers[-1].cancel()
            await asyncio.sleep(0.005)

    asking = asyncio.create_task(ask())
    await asyncio.sleep(0.05)
    await ours.begin(3)
    await ours.finish()
    for size in (1, 2):
        await Rebalance(ours.mover, size).begin()
        await asyncio.sleep(0.05)
        await ours.finish()
    await asking
    found = await asyncio.gather(*answers, return_exceptions=True)
    views = [one for answer in found if isinstance(answer, list) for one in answer]
    assert len([one for one in found if isinstance(one, list)]) == 120 - 120 // 5
    assert all(views)
    codes = await store.run(FINISH, [Ending(name, "", "") for name in NAMES], EVERYWHERE)
    assert codes == [Code.OK] * len(NAMES)
