"""Tokens: who may call what, for which topics, how often; and a file of them that changes."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.api_client import (
    FORBIDDEN,
    NO_SUCH_JOB,
    OK,
    TOO_MANY,
    UNAUTHORIZED,
    Api,
    Envelope,
    Json,
    open_api,
)
from tests.processes import Processes, QueueServer, StoreServer
from tests.routes import ROUTES, Route, named
from tests.waiting import PATIENCE_S, until_async

from .conftest import SETUPS, Setup, one_setup_of
from .jobs import neighbour, waiting_poll

PRODUCER: Final = "producer-0123456789"
CONSUMER: Final = "consumer-0123456789"
ADMIN: Final = "admin-0123456789abc"
VIEWER: Final = "viewer-0123456789abc"
OURS: Final = "ours-0123456789abcd"  # all roles, for the topics that begin with ours
STRANGER: Final = "stranger-0123456789"
TOKENS: Final = (
    f"produce:{PRODUCER}, consume:{CONSUMER}, view:{VIEWER}, admin:{ADMIN}, "
    f"produce:{OURS}:ours*, consume:{OURS}:ours*, admin:{OURS}:ours*"
)
GUARDED: Final = [route for route in ROUTES if route.endpoint.roles is not None]
WEB_PAGE: Final = {"Origin": "https://elsewhere.example"}
in_one_setup: Final = one_setup_of("guarded")


class Clients(NamedTuple):
    """One client per token."""

    url: str
    producer: Api
    consumer: Api
    viewer: Api
    admin: Api
    ours: Api
    stranger: Api
    nobody: Api


@pytest.fixture(scope="module", params=SETUPS)
def guarded(request: pytest.FixtureRequest, processes: Processes) -> Iterator[QueueServer]:
    setup: Setup = request.param
    store: StoreServer = request.getfixturevalue(setup.store)
    server = processes.server(store, **setup.settings(), auth_tokens=TOKENS)
    yield server
    server.close()


@pytest.fixture
async def clients(guarded: QueueServer) -> AsyncIterator[Clients]:
    tokens = (PRODUCER, CONSUMER, VIEWER, ADMIN, OURS, STRANGER, "")
    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(open_api(guarded.url, t)) for t in tokens]
        yield Clients(guarded.url, *opened)


async def ask(api: Api, route: Route) -> int:
    """The status of an answer to an empty request; it must have its envelope."""
    async with api.session.request(route.method, api.url + route.path, data=b"{}") as response:
        if response.status != 200:
            assert {"code", "message", "data"} == set(await response.json())
        return response.status


@in_one_setup
@pytest.mark.parametrize("route", GUARDED, ids=named)
async def test_without_a_known_token_nothing_is_done(clients: Clients, route: Route) -> None:
    assert await ask(clients.nobody, route) == 401
    assert await ask(clients.stranger, route) == 401


@in_one_setup
@pytest.mark.parametrize("route", GUARDED, ids=named)
async def test_a_role_may_call_what_the_table_says(clients: Clients, route: Route) -> None:
    roles = {
        "produce": clients.producer,
        "consume": clients.consumer,
        "view": clients.viewer,
        "admin": clients.admin,
    }
    refused = {role for role, api in roles.items() if await ask(api, route) == 403}
    assert refused == set(roles) - {*(route.endpoint.roles or ()), "admin"}
    told = {role: (await api.call("/whoami", {})).ok() for role, api in roles.items()}
    assert {role for role in told if route.path not in told[role]["endpoints"]} == refused


@in_one_setup
@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_probes_need_no_token(clients: Clients, path: str) -> None:
    (await clients.nobody.request("GET", path)).ok()
    (await clients.stranger.request("GET", path)).ok()


async def test_the_answer_says_how_to_come_in(clients: Clients) -> None:
    answer = await clients.nobody.get("a")
    answer.refused(UNAUTHORIZED, status=401)
    assert answer.headers["WWW-Authenticate"].startswith('Bearer realm="delay-queue"')


THEIRS: Final = {"topic": "theirs", "id": "a", "ttr": 60}
OURS_BESIDE_IT: Final = neighbour("a")  # delayed, for a verb that takes two jobs of a bucket
TIMES: Final = {"start": 0, "end": 100, "step": 1}

# what a client confined to `ours*` must not be able to do by naming a topic, or none
OUT_OF_REACH: Final[list[tuple[str, dict[str, Any]]]] = [
    ("/push", THEIRS),
    ("/pop", {"topic": "theirs", "timeout": 0}),
    ("/pop", {"topic": "ours,theirs", "timeout": 0}),
    ("/kick", {"topic": "theirs"}),
    ("/cancel", {"tag": "t", "topic": "theirs"}),
    ("/cancel", {"tag": "t"}),
    ("/kick", {"tag": "t"}),
    ("/reschedule", {"tag": "t", "delay": 1}),
    ("/reschedule", {"tag": "t", "topic": "theirs", "delay": 1}),
    ("/list", {"topic": "theirs"}),
    ("/list", {"tag": "t"}),
    ("/take", {"topic": "theirs", "start": 0}),
    ("/forecast", {"topic": "theirs"} | TIMES),
    ("/forecast", TIMES),
    ("/buried", {"topic": "theirs"}),
    ("/history", {"topic": "theirs"}),
    ("/find", {"topic": "theirs", "id": "a"}),
    ("/find", {"id": "a"}),
    ("/buried", {}),
    ("/pause", {"topic": "theirs"}),
    ("/limit", {"topic": "theirs", "rate": 1}),
    ("/limit", {"topic": "ours", "buried_to": "theirs"}),
    ("/limit", {"topic": "theirs", "buried_to": "ours"}),
    ("/resume", {"topic": "theirs"}),
    ("/purge", {"topic": "theirs"}),
    ("/subscribe", {"name": "n", "topic": "theirs", "url": "http://192.0.2.1/"}),
    ("/subscribe", {"name": "n", "topic": "ours", "url": "http://192.0.2.1/"}),
    ("/subscribe", {"name": "n", "topic": "ours", "if_exists": "change"}),
    ("/unsubscribe", {"name": "n"}),
    ("/subscribers", {"topic": "theirs"}),
    ("/subscribers", {}),
    ("/pause-subscriber", {"name": "n"}),
    ("/resume-subscriber", {"name": "n"}),
    ("/try-subscriber", {"name": "n"}),
    ("/accept-store", {}),
    ("/run-schedule", {"name": "n"}),
    ("/schedule", {"name": "n", "topic": "theirs", "every": 60, "ttr": 60}),
    ("/schedule", {"name": "n", "topic": "ours", "every": 60}),
    ("/schedule", {"name": "n", "topic": "ours", "if_exists": "change"}),
    ("/unschedule", {"name": "n"}),
    ("/schedules", {"topic": "theirs"}),
    ("/schedules", {}),
    ("/stats", {}),
    ("/workers", {}),
]
# these act on ids, and find no job of another topic: the code that they get, and the state in which others may do it
BY_ID: Final = [
    *((path, {"id": "a"}, OK, "delayed") for path in ("/finish", "/delete", "/get")),
    *((path, {"id": "a"}, NO_SUCH_JOB, "reserved") for path in ("/release", "/touch", "/bury")),
    ("/kick", {"id": "a"}, NO_SUCH_JOB, "delayed"),
    ("/reschedule", {"id": "a", "delay": 1}, NO_SUCH_JOB, "delayed"),
]
# these have no topic and no id, or answer only what the token may see
NAMES_NO_TOPIC: Final = {
    "/topics": "leaves out the others",
    "/preview-schedule": "reads nothing",
    "/note": "for a token of all topics",
    "/whoami": "tells of the token",
    "/metrics": "for a token of all topics",
    "/openapi.json": "tells of the program",
    "/docs": "tells of the program",
}


@in_one_setup
@pytest.mark.parametrize(("path", "payload"), OUT_OF_REACH)
async def test_a_token_for_some_topics_reaches_no_other(
    clients: Clients, path: str, payload: dict[str, Any]
) -> None:
    message = (await clients.ours.call(path, payload)).refused(FORBIDDEN, status=403)
    assert "theirs" in message or "topic" in message


async def test_only_a_token_for_all_topics_writes_and_reads_notes(clients: Clients) -> None:
    said = {"reason": "HTTP 503", "text": "the shop theirs.eu is down"}
    assert "topic" in (await clients.ours.call("/note", said)).refused(FORBIDDEN, status=403)
    (await clients.ours.push(topic="ours.x", id=OURS_BESIDE_IT)).ok()
    (await clients.ours.pop("ours.x")).ok()
    (await clients.ours.call("/bury", {"id": OURS_BESIDE_IT, "message": "HTTP 503"})).ok()
    (await clients.admin.call("/note", said)).ok()
    has_note = []
    for api in (clients.admin, clients.ours):
        [group] = (await api.call("/buried", {"topic": "ours.x"})).ok()["groups"]
        has_note.append("note" in group)
    assert has_note == [True, False]
    await clients.admin.delete(OURS_BESIDE_IT)


@in_one_setup
@pytest.mark.parametrize(("path", "payload", "code", "state"), BY_ID)
async def test_a_token_for_some_topics_finds_no_job_of_another(
    clients: Clients, path: str, payload: dict[str, Any], code: int, state: str
) -> None:
    delay = {"delayed": 3600, "reserved": 0}[state]
    (await clients.ours.push(topic="ours.x", id=OURS_BESIDE_IT, delay=60)).ok()
    (await clients.admin.call("/push", THEIRS | {"topic": "theirs.id", "delay": delay})).ok()
    if state == "reserved":
        assert (await clients.admin.pop("theirs.id")).ok()["id"] == "a"
    before = (await clients.admin.get("a")).ok()
    answer = await clients.ours.call(path, payload)
    assert (answer.code, answer.data) == (code, None)
    assert (await clients.admin.get("a")).ok() == before
    # others can do what this one could not: neither the payload nor the job's state was in the way
    told = (await clients.admin.call(path, payload)).ok()
    assert code != OK or told is not None or (await clients.admin.get("a")).ok() != before
    for left in ("a", OURS_BESIDE_IT):
        await clients.admin.delete(left)


async def test_a_token_learns_what_it_is_good_for(clients: Clients) -> None:
    asked = {"producer": clients.producer, "admin": clients.admin, "ours": clients.ours}
    found = {name: (await api.call("/whoami", {})).ok() for name, api in asked.items()}
    of_producer = found["producer"].pop("endpoints")
    assert of_producer[0] == "/push"
    assert of_producer[-3:] == ["/whoami", "/healthz", "/readyz"]
    assert "/kick" not in of_producer
    assert "/kick" in found["admin"].pop("endpoints")
    assert "/kick" in found["ours"].pop("endpoints")
    assert found == {
        "producer": {"roles": ["produce"], "topics": ["*"]},
        "admin": {"roles": ["admin"], "topics": ["*"]},
        "ours": {"roles": ["admin", "consume", "produce"], "topics": ["ours*"]},
    }


async def test_a_token_for_some_topics_works_within_them(clients: Clients) -> None:
    job = {"topic": "ours.x", "id": "ours-1", "ttr": 60}
    answers = (await clients.ours.call("/push", [job, THEIRS | {"id": "b"}])).ok()
    assert [answer["code"] for answer in answers] == [OK, FORBIDDEN]
    assert (await clients.ours.pop("ours.x")).ok()["id"] == "ours-1"
    assert (await clients.ours.get("ours-1")).ok()["state"] == "reserved"
    (await clients.admin.push(topic="theirs", id="c")).ok()
    listed = (await clients.ours.request("GET", "/topics")).ok()
    assert [topic["topic"] for topic in listed] == ["ours.x"]
    (await clients.ours.finish("ours-1")).ok()
    assert (await clients.admin.get("ours-1")).ok() is None


async def test_pages_of_other_sites_are_refused(clients: Clients) -> None:
    (await clients.admin.call("/push", THEIRS, WEB_PAGE)).refused(FORBIDDEN, status=403)
    host = clients.url.removeprefix("http://")
    for headers, code in (
        ({"Origin": clients.url}, OK),
        ({"Origin": f"http://{host}0"}, FORBIDDEN),
        ({"Origin": "null"}, FORBIDDEN),
        ({"Origin": "null", "Host": ""}, FORBIDDEN),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "https://proxy.example"}, OK),
        ({"Sec-Fetch-Site": "none"}, OK),
        ({"Sec-Fetch-Site": "cross-site"}, FORBIDDEN),
        ({"Sec-Fetch-Site": "same-site"}, FORBIDDEN),
    ):
        assert (await clients.admin.call("/get", {"id": "x"}, headers)).code == code, headers


def put(file: Path, text: str) -> None:
    """In one step: a worker may be reading it at any time."""
    new = file.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(file)


LOST: Final = {
    "the token": (f"consume:{STRANGER}:lost*", UNAUTHORIZED, 401),
    "the role": (f"produce:{CONSUMER}", FORBIDDEN, 403),
    "the topic": (f"consume:{CONSUMER}:other*", FORBIDDEN, 403),
}


@pytest.mark.parametrize("left", LOST.values(), ids=LOST)
async def test_a_poll_that_waits_gets_no_job_that_its_token_may_not_have_any_more(
    processes: Processes,
    redis_server: StoreServer,
    tmp_path: Path,
    left: tuple[str, int, int],
) -> None:
    entry, code, status = left
    file = tmp_path / "tokens"
    put(file, f"admin:{ADMIN}\nproduce:{CONSUMER}\nconsume:{CONSUMER}\n")
    server = processes.server(redis_server, auth_tokens_file=file)
    async with open_api(server.url, ADMIN) as admin, open_api(server.url, CONSUMER) as api:
        stays = await waiting_poll(admin, "stays", timeout=30)
        counts: list[Json] = [{}, {"count": 2}]
        lost = [await waiting_poll(api, "lost", timeout=30, **count) for count in counts]
        put(file, f"admin:{ADMIN}\n{entry}\n")

        async def is_known() -> bool:
            return (await api.pop("lost", timeout=0)).code == code

        await until_async(is_known)
        for topic in ("stays", "lost"):
            (await admin.push(topic=topic, id=topic)).ok()
        assert (await stays).ok()["id"] == "stays"
        for poll in lost:
            (await poll).refused(code, status)
        job = (await admin.pop("lost")).ok()
        assert (job["id"], job["attempt"]) == ("lost", 1)


async def test_requests_beyond_the_rate_of_a_token_are_refused_for_a_while(
    processes: Processes, redis_server: StoreServer
) -> None:
    server = processes.server(redis_server, auth_tokens=TOKENS, token_rate=10)
    async with open_api(server.url, ADMIN) as api, open_api(server.url, PRODUCER) as other:
        answers: list[Envelope] = []
        refused: list[Envelope] = []
        async with asyncio.timeout(PATIENCE_S):
            while not refused:  # a busy machine may take longer for them than the rate
                answers += await asyncio.gather(*(api.get("x") for _ in range(40)))
                refused = [answer for answer in answers if answer.code == TOO_MANY]
        assert len(answers) - len(refused) >= 10
        assert {answer.status for answer in refused} == {429}
        assert {answer.headers["Retry-After"] for answer in refused} == {"1"}
        (await other.get("x")).ok()  # each token has its own
        await until_async(lambda: says_ok(api))


async def says_ok(api: Api) -> bool:
    return (await api.get("x")).code == OK


async def test_polls_beyond_the_limit_are_refused_and_others_are_not(
    processes: Processes, redis_server: StoreServer
) -> None:
    server = processes.server(redis_server, max_polls=2)
    async with open_api(server.url) as api:
        polls = {asyncio.create_task(api.pop("t", timeout=20)) for _ in range(4)}
        waiting = polls
        while len(waiting) > 2:
            refused, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in refused:
                task.result().refused(TOO_MANY, status=429)
                assert int(task.result().headers["Retry-After"]) > 0
        assert (await api.pop("t", timeout=0)).ok() is None
        for number in range(2):
            (await api.push(topic="t", id=f"{number}")).ok()
        assert {(await poll).ok()["id"] for poll in waiting} == {"0", "1"}
        assert (await api.pop("t", timeout=0.01)).ok() is None
