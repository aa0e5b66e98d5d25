"""Requests that share one call do not share each other's errors."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from delayqueue.store.batcher import Batcher
from tests.store.bucket import Bucket, job
from tests.store.conftest import connect

if TYPE_CHECKING:
    from delayqueue.domain.job import JobView

BAD = b"caf\xe9".decode("utf-8", "surrogateescape")


async def test_what_cannot_be_written_costs_its_own_request_only(valkey_server: Any) -> None:
    async with connect(valkey_server) as redis:
        bucket = Bucket.over(redis)
        ids = [f"id-{n}" for n in range(10)]
        await bucket.push(*map(job, ids))
        batcher: Batcher[str, JobView | None] = Batcher(
            lambda some: bucket.store.get(0, some), "get"
        )
        asked = [*ids[:3], BAD, *ids[3:], BAD]
        answers = await asyncio.gather(
            *(batcher.submit([job_id]) for job_id in asked), return_exceptions=True
        )
    for job_id, answer in zip(asked, answers, strict=True):
        if job_id == BAD:
            assert isinstance(answer, UnicodeEncodeError)
        else:
            assert not isinstance(answer, BaseException)
            assert [getattr(view, "id", None) for view in answer] == [job_id]


async def sizes_of_calls(*requests: list[bytes]) -> list[list[int]]:
    """The bytes of each item, by calls."""
    calls = list[list[int]]()

    async def call(items: list[bytes]) -> list[None]:
        calls.append([len(item) for item in items])
        return [None] * len(items)

    batcher: Batcher[bytes, None] = Batcher(call, "push", len)
    await asyncio.gather(*map(batcher.submit, requests))
    return calls


async def test_requests_go_together_up_to_so_many_bytes() -> None:
    mib = 1 << 20
    assert await sizes_of_calls(*[[bytes(mib)]] * 10) == [[mib] * 4, [mib] * 4, [mib] * 2]
    large = [bytes(mib)] * 7  # one request goes into one call, however large it is
    assert await sizes_of_calls([b"x"], large, [b"x"]) == [[1], [mib] * 7, [1]]


async def test_a_request_waits_for_no_call_in_flight_while_another_may_begin() -> None:
    calls = list[tuple[list[int], asyncio.Future[None]]]()

    async def call(items: list[int]) -> list[int]:
        calls.append((items, asyncio.get_running_loop().create_future()))
        await calls[-1][1]
        return items

    batcher: Batcher[int, int] = Batcher(call, "push", in_flight=2)
    submitted = []
    for pair in ([0, 1], [2, 3], [4, 5]):
        submitted += [batcher.submit([item]) for item in pair]
        await asyncio.sleep(0)
    assert [items for items, _ in calls] == [[0, 1], [2, 3]]
    calls[1][1].set_result(None)  # they need not end in order
    assert await asyncio.gather(*submitted[2:4]) == [[2], [3]]
    await asyncio.sleep(0)
    assert [items for items, _ in calls[2:]] == [[4, 5]]
    for _, answered in (calls[0], calls[2]):
        answered.set_result(None)
    assert await asyncio.gather(*submitted) == [[item] for item in range(6)]
