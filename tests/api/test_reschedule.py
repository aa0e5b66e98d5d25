"""Many jobs moved by their ids. The rest: tests/store/test_reschedule.py, tests/client/test_verbs.py."""

import time

from tests.api_client import Api


async def test_ids_are_moved_by_a_distance_once_and_get_a_priority(api: Api, topic: str) -> None:
    due = int(time.time()) + 600
    (await api.push(topic=topic, id=topic, due=due)).ok()
    asked = {"ids": [topic, "never-pushed", topic], "by": -60, "priority": 3}
    row = {"id": topic, "code": 0, "due": due - 60}
    assert (await api.call("/reschedule", asked)).ok() == {
        "count": 2,
        "results": [row, {"id": "never-pushed", "code": 2, "due": None}, row],
    }
    assert (await api.call("/reschedule", {"id": topic, "priority": 5})).ok() == {"due": due - 60}
    found = (await api.get(topic)).ok()
    assert (found["priority"], found["due"]) == (5, due - 60)
