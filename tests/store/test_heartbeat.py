"""heartbeat, servers: which server processes are alive."""

import asyncio
import json
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pytest

from delayqueue.domain.troubles import Troubles
from delayqueue.engine import heartbeat
from delayqueue.engine.heartbeat import Heartbeat
from delayqueue.engine.reports import SILENT, ServerReport
from delayqueue.errors import Unavailable
from delayqueue.metrics import WAITING_POLLS, Metrics
from delayqueue.store.registry import Registry, Reported
from tests.store.bucket import Bucket
from tests.store.turning import DAY_MS, Clock, coarse
from tests.waiting import until, until_async

SILENCE_MS: Final = 15_000


@coarse
@pytest.mark.parametrize("step_ms", [SILENCE_MS + 1, 400 * DAY_MS, -400 * DAY_MS])
async def test_one_that_fell_silent_is_dropped_also_when_the_clock_was_put_back(
    wheel: Bucket, clock: Clock, step_ms: int
) -> None:
    await wheel.store.registry.heartbeat("servers", "gone", "{}", SILENCE_MS)
    clock.pass_ms(step_ms)
    assert await wheel.store.registry.reports("servers", SILENCE_MS) == []
    await wheel.store.registry.heartbeat("servers", "here", "{}", SILENCE_MS)
    clock.pass_ms(-step_ms)
    await wheel.store.registry.heartbeat("servers", "there", "{}", SILENCE_MS)
    assert [name for name, _, _ in await wheel.store.registry.reports("servers", SILENCE_MS)] == [
        "there"
    ]


@coarse
@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('{"version": "9", "pushed": 1, "stolen": 2}', {"version": "9", "pushed": 1}),  # newer
        ('{"version": "0"}', {"version": "0"}),  # older
    ],
)
async def test_a_server_of_another_version_is_seen_with_the_figures_that_both_know(
    wheel: Bucket, written: str, read: dict[str, Any]
) -> None:
    await wheel.store.registry.heartbeat("servers", "other", written, SILENCE_MS)
    [seen] = await Heartbeat(wheel.store.registry, Metrics(), "this", Troubles()).servers()
    at = seen.stats.seen
    assert seen == ServerReport(replace(SILENT, name="other", seen=at, **read))


@coarse
async def test_what_later_versions_tell_is_left_out_while_it_says_nothing(wheel: Bucket) -> None:
    """An older version cannot read the entry otherwise; row 33 of the faults has one."""
    metrics = Metrics()
    metrics.show(WAITING_POLLS, lambda: 0)
    heart = Heartbeat(wheel.store.registry, metrics, "this", Troubles())
    beating = asyncio.create_task(heart.run())
    await until(lambda: heart.noted_at is not None)
    beating.cancel()
    [(_, _, written)] = await wheel.store.registry.reports("servers", SILENCE_MS)
    assert "pushed" in json.loads(written)
    assert not {"call_limit", "calls", "outboxes"} & json.loads(written).keys()


@pytest.mark.parametrize("is_another", [False, True])
async def test_a_server_notices_another_one_of_its_name(
    bucket: Bucket,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    is_another: bool,
) -> None:
    """Not the one whose place it takes, which may still work for seconds."""
    monkeypatch.setattr(heartbeat, "INTERVAL_S", 0.01)
    registry, metrics = bucket.store.registry, Metrics()
    metrics.show(WAITING_POLLS, lambda: 0)
    heart = Heartbeat(registry, metrics, "this", Troubles())
    beating = asyncio.create_task(heart.run())
    others = heartbeat.MOST_NAMESAKES if is_another else 3
    for beat in range(others):
        await registry.heartbeat("servers", "this", f'{{"started": {beat}}}', SILENCE_MS)
        await until_async(partial(has_told, registry, beat))
    says = "another server is called this"
    if is_another:
        await until(lambda: says in caplog.text)
    beating.cancel()
    assert caplog.text.count(says) == int(is_another)


@pytest.mark.parametrize("is_of_former_server", [False, True])
async def test_a_server_notices_that_the_data_was_set_back(
    bucket: Bucket,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    is_of_former_server: bool,
) -> None:
    monkeypatch.setattr(heartbeat, "INTERVAL_S", 0.01)
    metrics, key = Metrics(), bucket.keys.named("servers")
    metrics.show(WAITING_POLLS, lambda: 0)
    if is_of_former_server:
        await bucket.store.registry.heartbeat("servers", "this", '{"started": 1}', SILENCE_MS)
        before = await bucket.redis.hget(key, "this")
    heart = Heartbeat(bucket.store.registry, metrics, "this", Troubles())
    beating = asyncio.create_task(heart.run())
    await until(lambda: heart.noted_at is not None)
    if not is_of_former_server:
        before = await bucket.redis.hget(key, "this")
    for _ in range(heartbeat.MOST_PENDING + 1):
        metrics.count_event("pushed", "t", 1)
        noted_at = heart.noted_at
        await until(lambda at=noted_at: heart.noted_at != at)  # type: ignore[misc]
    says = "the store's data is that of "
    assert says not in caplog.text
    await bucket.redis.hset(key, "this", before)
    await until(lambda: says in caplog.text)
    beating.cancel()
    assert caplog.text.count(says) == 1


async def test_an_entry_whose_answer_was_lost_before_the_store_was_away_is_no_older_data(
    bucket: Bucket, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "INTERVAL_S", 0.01)
    registry, metrics = bucket.store.registry, Metrics()
    beats: list[str] = []
    metrics.show(WAITING_POLLS, lambda: 0)
    beat = registry.heartbeat

    async def goes_away(on: Reported, name: str, figures: str, silence_ms: int) -> tuple[int, str]:
        metrics.count_event("pushed", "t", 1)
        beats.append(figures)
        is_away = 2 < len(beats) < 3 * heartbeat.MOST_PENDING
        found = (0, "") if is_away else await beat(on, name, figures, silence_ms)
        if is_away or len(beats) == 2:  # which is carried out
            raise Unavailable
        return found

    monkeypatch.setattr(registry, "heartbeat", goes_away)
    heart = Heartbeat(registry, metrics, "this", Troubles())
    beating = asyncio.create_task(heart.run())
    await until(lambda: len(beats) > 3 * heartbeat.MOST_PENDING)
    beating.cancel()
    assert "the store's data" not in caplog.text


async def has_told(registry: Registry, beat: int) -> bool:
    """Whether the entry of that beat is replaced."""
    [(_, _, written)] = await registry.reports("servers", SILENCE_MS)
    return bool(json.loads(written)["started"] != beat)
