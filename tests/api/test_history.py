"""/history: what servers have recorded is there when another one is asked; and who may see it."""

from functools import partial
from typing import Final

from redis import Redis

from tests.api_client import FORBIDDEN, Api, open_api
from tests.processes import Processes, StoreServer

ADMIN: Final = "admin-0123456789abc"
OURS: Final = "ours-0123456789abcd"
LOOKS: Final = "looks-0123456789abc"
NOTHING: Final = (0, 0, 0, 0)


def sums(shown: dict[str, list[int | None]]) -> tuple[int, ...]:
    """Jobs pushed, delivered and finished, and attempts that failed, over all steps."""
    names = ("pushed", "delivered", "finished", "failed")
    return tuple(sum(number or 0 for number in shown[name]) for name in names)


async def live_a_life(api: Api) -> None:
    for topic in ("ours.mail", "theirs"):
        (await api.push(topic=topic, id=f"{topic} 1")).ok()
        (await api.push(topic=topic, id=f"{topic} 2", delay=3600)).ok()
        (await api.pop(topic)).ok()
        (await api.call("/release", {"id": f"{topic} 1"})).ok()
        (await api.pop(topic)).ok()
        (await api.finish(f"{topic} 1")).ok()


async def test_what_servers_kept_is_there_when_another_one_is_asked(
    processes: Processes, redis_server: StoreServer
) -> None:
    tokens = f"admin:{ADMIN}, view:{LOOKS}, view:{OURS}:ours.*"
    start = partial(
        processes.server,
        redis_server,
        redis__db=redis_server.new_database(),
        auth_tokens=tokens,
    )
    server = start()
    async with open_api(server.url, token=ADMIN) as api:
        await live_a_life(api)
    server.stop()  # one that is told to stop adds what it has counted
    server = start()
    async with open_api(server.url, token=LOOKS) as api:
        for span, steps in (("3h", 180), ("2d", 288), ("30d", 720)):
            shown = (await api.call("/history", {"span": span})).ok()
            assert sums(shown) == (4, 4, 2, 2)
            assert all(len(shown[name]) == steps for name in ("pushed", "buried"))
        assert sums((await api.call("/history", {"topic": "theirs"})).ok()) == (2, 2, 1, 1)
        assert sums((await api.call("/history", {"topic": "unknown"})).ok()) == NOTHING
        asked = {"topics": ["theirs"], "rates": True}
        [counts] = (await api.call("/topics", asked)).ok()
        assert set(counts["rates"]) == {"pushed", "delivered", "finished", "failed"}
        assert counts["rates"]["pushed"] > 0
        starts = [mark["server"] for mark in shown["marks"] if mark["kind"] == "started"]
        assert len(starts) == len(set(starts)) == 2
    async with open_api(server.url, token=OURS) as api:
        shown = (await api.call("/history", {"span": "3h"})).ok()
        assert sums(shown) == (2, 2, 1, 1)
        assert {mark["server"] for mark in shown["marks"]} == {""}
        assert (await api.call("/history", {"topic": "theirs"})).code == FORBIDDEN


async def test_a_server_keeps_none_where_it_is_switched_off(
    processes: Processes, redis_server: StoreServer
) -> None:
    database = redis_server.new_database()
    server = processes.server(redis_server, redis__db=database, history="no")
    async with open_api(server.url) as api:
        await live_a_life(api)
        assert sums((await api.call("/history", {})).ok()) == NOTHING
    server.stop()
    with Redis(port=redis_server.port, db=database) as redis:
        assert redis.keys("*:history:*") == []
