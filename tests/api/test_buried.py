"""/buried: dead letters over all topics, by reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.api_client import INVALID

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.api_client import Api


async def bury(api: Api, topic: str, job_id: str, message: str) -> None:
    await api.push(topic=topic, id=job_id)
    (await api.call("/bury", {"id": job_id, "message": message})).ok()


async def test_dead_letters_of_all_topics_are_grouped_by_reason(
    api: Api, name: Callable[[str], str]
) -> None:
    one, other, cause = name("one"), name("other"), "grouped over topics"
    for number in range(3):
        await bury(api, one, f"{one}-{number}", f"{cause}: order {10_000 + number}")
    await bury(api, other, f"{other}-0", f"{cause}: order 20000")
    await bury(api, other, f"{other}-1", cause)
    found = (await api.call("/buried", {"ids": 10})).ok()
    groups = {group["reason"]: group for group in found["groups"]}
    group = groups[f"{cause}: order #"]
    assert (group["count"], group["topics"]) == (4, {one: 3, other: 1})
    assert {*group["ids"]} == {f"{one}-0", f"{one}-1", f"{one}-2", f"{other}-0"}
    assert group["first"] < group["last"]
    assert groups[cause]["count"] == 1
    assert found["cursor"] == ""


async def test_one_topic_and_one_reason_can_be_asked_for(
    api: Api, name: Callable[[str], str]
) -> None:
    topic = name("topic")
    for number in range(3):
        await bury(api, topic, f"{topic}-{number}", "shut")
    await bury(api, topic, f"{topic}-3", "open")
    asked = {"topic": topic, "reason": "shut"}
    [group] = (await api.call("/buried", asked)).ok()["groups"]
    assert (group["reason"], group["count"], len(group["ids"])) == ("shut", 3, 1)
    (await api.call("/kick", {"ids": [f"{topic}-3"]})).ok()
    found = (await api.call("/buried", {"topic": topic})).ok()["groups"]
    assert [group["reason"] for group in found] == ["shut"]


async def test_a_cursor_that_was_made_up_is_refused(api: Api) -> None:
    assert "cursor" in (await api.call("/buried", {"cursor": "WzEsMiwzXQ=="})).refused(INVALID)
