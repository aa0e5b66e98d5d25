"""/buried: dead letters over all topics, by reason."""

from collections.abc import Callable
from typing import Any

from tests.api_client import INVALID, Api


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


async def test_the_burials_of_a_group_are_counted_in_steps(api: Api, topic: str) -> None:
    for number in range(3):
        await bury(api, topic, f"{topic}-{number}", "shut")
    [group] = (await api.call("/buried", {"topic": topic})).ok()["groups"]
    assert "counts" not in group
    asked = {"topic": topic, "start": group["last"] - 5400, "step": 3600, "steps": 3}
    [group] = (await api.call("/buried", asked)).ok()["groups"]
    assert (sum(group["counts"]), group["counts"][2]) == (3, 0)
    asked["start"] = group["last"] + 1
    [group] = (await api.call("/buried", asked)).ok()["groups"]
    assert group["counts"] == [0, 0, 0]
    del asked["step"]
    assert "steps" in (await api.call("/buried", asked)).refused(INVALID)
    asked["topic"] += "-without-dead-letters"
    assert "steps" in (await api.call("/buried", asked)).refused(INVALID)


async def test_a_note_is_about_the_dead_letters_that_were_there(api: Api, topic: str) -> None:
    async def shown() -> Any:
        [group] = (await api.call("/buried", {"topic": topic})).ok()["groups"]
        return group.get("note")

    reason = f"shut {topic}"
    await bury(api, topic, f"{topic}-0", reason)
    [group] = (await api.call("/buried", {"topic": topic})).ok()["groups"]
    (await api.call("/note", {"reason": group["reason"], "text": "found"})).ok()
    (await api.call("/note", {"reason": group["reason"], "text": " being fixed\n"})).ok()
    note = await shown()
    assert (note["text"], note["by"]) == ("being fixed", "anybody")
    assert note["at"] >= group["last"]
    await bury(api, topic, f"{topic}-1", reason)
    assert await shown() == note  # one of those is left
    (await api.call("/delete", {"id": f"{topic}-0"})).ok()
    assert await shown() is None
    (await api.call("/note", {"reason": group["reason"], "text": "again"})).ok()
    assert (await shown())["text"] == "again"
    (await api.call("/note", {"reason": group["reason"]})).ok()
    assert await shown() is None
