"""Relays tell how their outboxes are, and /stats shows it."""

from typing import Any

from delayqueue.domain.outboxes import MAX_REASON_CHARS
from tests.api_client import Api, open_api
from tests.processes import Processes, StoreServer
from tests.waiting import until_async

TOLD: dict[str, Any] = {"name": "db1/shop/outbox", "failed": 2, "reason": "no", "oldest_age": 1.5}


async def test_every_server_shows_what_a_relay_told_one_of_them(
    processes: Processes, redis_server: StoreServer
) -> None:
    database = redis_server.new_database()
    servers = [processes.server(redis_server, redis__db=database) for _ in range(2)]
    async with open_api(servers[0].url) as told, open_api(servers[1].url) as asked:

        async def is_shown(**wanted: object) -> bool:
            shown = (await asked.call("/stats", {})).ok()["outboxes"]
            return len(shown) == 1 and (TOLD | wanted).items() <= shown[0].items()

        assert (await asked.call("/stats", {})).ok()["outboxes"] == []
        (await told.call("/whoami", {"outbox": TOLD})).ok()
        await until_async(is_shown)
        mended = {"name": TOLD["name"]}
        (await told.call("/whoami", {"outbox": mended})).ok()
        await until_async(lambda: is_shown(failed=0, reason="", oldest_age=0))
        long = TOLD | {"reason": "x" * 10_000}
        (await asked.call("/whoami", {"outbox": long})).ok()
        await until_async(lambda: is_shown(reason="x" * MAX_REASON_CHARS))


async def test_only_who_may_push_tells_of_an_outbox(
    processes: Processes, redis_server: StoreServer
) -> None:
    tokens = ",".join(f"{role}:a-token-that-may-{role}" for role in ("produce", "consume", "view"))
    server = processes.server(redis_server, auth_tokens=tokens)
    for role in ("produce", "consume", "view"):
        async with open_api(server.url, token=f"a-token-that-may-{role}") as client:
            answer = await client.call("/whoami", {"outbox": TOLD})
            if role == "produce":
                assert answer.ok()["roles"] == ["produce"]
            else:
                answer.refused(8, status=403)


async def test_who_asks_needs_no_body(api: Api) -> None:
    for answer in (await api.request("POST", "/whoami"), await api.request("GET", "/whoami")):
        assert "produce" in answer.ok()["roles"]
