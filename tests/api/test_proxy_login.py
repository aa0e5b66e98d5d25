"""Login by the proxy, over real connections: 127.0.0.2 is the proxy, 127.0.0.1 is everybody else."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import aiohttp
import pytest

from tests.api.test_reloading import CALLS, Reloading
from tests.api_client import FORBIDDEN, OK, Api
from tests.processes import LOOPBACK, Processes, QueueServer, StoreServer
from tests.waiting import until

PROXY: Final = "127.0.0.2"
OTHER_PROXY: Final = "127.0.0.3"
TOKEN: Final = "token-0123456789"
LOGINS: Final = f"""
language = en
auth_tokens = consume:{TOKEN}
proxy_user_header = Remote-User
proxy_roles_header = Remote-Groups
proxy_roles = admin:ops, view:*
proxy_allow = {PROXY}
"""
ALICE: Final = {"Remote-User": "alice", "Remote-Groups": "staff,ops"}
BOB: Final = {"Remote-User": "王小明", "Remote-Groups": "staff"}


@asynccontextmanager
async def coming_from(
    server: QueueServer, address: str, headers: Mapping[str, str] | None = None
) -> AsyncIterator[Api]:
    """A client with this address."""
    connector = aiohttp.TCPConnector(limit=0, local_addr=(address, 0))
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        yield Api(session, server.url)


@pytest.fixture(scope="module")
def server(processes: Processes, redis_server: StoreServer) -> Iterator[QueueServer]:
    """Two processes; a test of one has a server of its own."""
    server = processes.configured(LOGINS, redis_server, workers=2)
    server.start()
    yield server
    server.close()


async def test_the_proxy_says_who_a_user_is(server: QueueServer) -> None:
    async with coming_from(server, PROXY, ALICE) as alice, coming_from(server, PROXY, BOB) as bob:
        told = (await alice.call("/whoami", {})).ok()
        assert (told["user"], told["roles"], told["topics"]) == ("alice", ["admin", "view"], ["*"])
        told = (await bob.request("GET", "/whoami")).ok()
        assert (told["user"], told["roles"]) == ("王小明", ["view"])
        (await alice.push(topic="logins", id="a", delay=60)).ok()
        answer = await bob.push(topic="logins", id="b", delay=60)
        assert "user 王小明 has the roles view" in answer.refused(FORBIDDEN, status=403)


async def test_the_same_header_from_elsewhere_is_refused(server: QueueServer) -> None:
    claims = [ALICE, {"Remote-User": "alice"}, {"Remote-Groups": "ops"}]
    for claim in claims:
        forwarded = {"X-Forwarded-For": PROXY, "Authorization": f"Bearer {TOKEN}"}
        async with coming_from(server, LOOPBACK, claim | forwarded) as other:
            for path in ("/topics", "/pop", "/whoami"):
                message = (await other.call(path, {"topic": "t"})).refused(FORBIDDEN, status=403)
                assert f"refused from {LOOPBACK}, which is not in proxy_allow" in message
            chinese = await other.call("/whoami", {}, {"Accept-Language": "zh"})
            assert "不在 proxy_allow 中" in chinese.refused(FORBIDDEN, status=403)
            (await other.request("GET", "/healthz")).ok()


ODD: Final = [
    (["Remote-User: a", "Remote-User: a"], 403, "even two that say the same"),
    (["Remote-User: alice", "Remote-User: root"], 403, "two, of which the proxy set one"),
    (["Remote-User: alice", "remote-user: root"], 403, "whatever the case"),
    (["Remote-User: alice", "Remote-Groups: ops", "Remote-Groups: staff"], 403, "groups as well"),
    (["Remote-User:"], 403, "an empty one"),
    (["Remote-User: " + "x" * 7000], 403, "a long one"),
    (["Remote-User: " + "x" * 9000], 400, "one that is no HTTP"),
    (["Remote-User: al\udce4ice"], 403, "not UTF-8"),
    (["Remote-User: Zoë"], 200, "UTF-8"),
    (["Remote-User : alice"], 400, "no header's name"),
    (["Remote-User: alice", " root"], 400, "a folded line"),
    (["Remote_User: root"], 401, "another header"),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "status", "_why"), ODD)
async def test_a_doubtful_header_is_nobody(
    server: QueueServer, lines: list[str], status: int, _why: str
) -> None:
    """Sent raw, because client libraries would refuse some of these."""
    reader, writer = await asyncio.open_connection(LOOPBACK, server.port, local_addr=(PROXY, 0))
    head = "\r\n".join(["POST /whoami HTTP/1.1", "Host: x", *lines, "Content-Length: 2", "", "{}"])
    writer.write(head.encode("utf-8", "surrogateescape"))
    answer = await asyncio.wait_for(reader.readuntil(b"\r\n"), 30)
    writer.close()
    assert int(answer.split()[1]) == status


async def test_the_log_and_the_history_name_the_user(server: QueueServer) -> None:
    page = {"X-Admin-Page": "yes"}
    async with coming_from(server, PROXY, ALICE | page) as alice:
        (await alice.call("/pause", {"topic": "logins"})).ok()
    await until(lambda: "page: pause" in server.logged())
    [line] = [line for line in server.logged().splitlines() if "page: pause" in line]
    assert f"by admin+view user alice from {PROXY}: 1 done, code 0" in line


async def test_pages_of_other_sites_cannot_use_a_login(server: QueueServer) -> None:
    """The browser sends the proxy's cookie for them, too."""
    async with coming_from(server, PROXY, ALICE) as alice:
        for foreign in (
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
        ):
            for path in ("/purge", "/push", "/pause"):
                answer = await alice.call(path, {"topic": "logins"}, foreign)
                assert "other sites" in answer.refused(FORBIDDEN, status=403)
        (await alice.call("/pause", {"topic": "logins"}, {"Sec-Fetch-Site": "same-origin"})).ok()


async def test_a_reload_changes_who_is_believed(
    processes: Processes, redis_server: StoreServer
) -> None:
    """The rules of each setting: tests/unit/test_proxy_login.py."""
    server = processes.configured(LOGINS, redis_server)
    server.start()
    reloading = Reloading(server, 1, "")

    async def codes(address: str, headers: Mapping[str, str]) -> set[int]:
        async def code() -> int:
            async with coming_from(server, address, headers) as api:
                return (await api.call("/topics", {})).code

        return set(await asyncio.gather(*(code() for _ in range(CALLS))))

    assert await codes(PROXY, ALICE) == {OK}
    await reloading.change(LOGINS.replace(PROXY, OTHER_PROXY))
    assert await codes(PROXY, ALICE) == {FORBIDDEN}
    assert await codes(OTHER_PROXY, ALICE) == {OK}
    reloading.write(LOGINS.replace(f"proxy_allow = {PROXY}", ""))
    await until(lambda: reloading.count("proxy_user_header: needs proxy_allow") > 0)
    assert await codes(OTHER_PROXY, ALICE) == {OK}
    await reloading.change(LOGINS.replace(f"proxy_allow = {PROXY}", "proxy_allow = 0.0.0.0/0"))
    assert reloading.count("proxy_allow = 0.0.0.0/0: whoever has one of these") == 1
    assert server.stop() == 0
