"""Notes on dead letters: how many are kept, and for how long."""

import json
from typing import Any

import pytest

from delayqueue.answers.topics import Note
from delayqueue.engine.notes import KEPT_S, MOST, Notes
from tests.store.bucket import Bucket
from tests.store.turning import Clock, coarse


@pytest.fixture
def notes(wheel: Bucket) -> Notes:
    return Notes(wheel.store.registry)


@coarse
async def test_the_oldest_gives_way(notes: Notes, clock: Clock) -> None:
    for number in range(MOST):
        clock.pass_ms(1)
        await notes.put(f"{number}", "said", "somebody")
    await notes.put("1", "said again", "another")
    assert len(await notes.all()) == MOST
    clock.pass_ms(1)
    await notes.put("new", "said", "somebody")
    assert {*await notes.all()} == {*map(str, range(1, MOST)), "new"}


@coarse
async def test_a_note_ends_and_so_does_one_that_nobody_can_read(
    notes: Notes, wheel: Bucket, clock: Clock
) -> None:
    key = wheel.keys.named("notes")
    await wheel.redis.hset(key, "broken", "{")
    await notes.put("old", "said", "somebody")
    assert [*await notes.all()] == ["old"]
    clock.pass_ms(round(KEPT_S * 1000) + 1)
    assert await notes.all() == {}
    await notes.put("new", "said", "somebody")
    assert await wheel.redis.hkeys(key) == [b"new"]


@coarse
async def test_a_note_is_kept_as_earlier_versions_write_and_read_it(
    notes: Notes, wheel: Bucket
) -> None:
    key = wheel.keys.named("notes")
    await notes.put("new", "said", "somebody")
    kept: Any = await wheel.redis.hget(key, "new")
    text, by, at_ms = json.loads(kept[kept.index(b"[") :])
    assert (text, by) == ("said", "somebody")
    assert (await notes.all())["new"] == Note("said", "somebody", at_ms / 1000)
