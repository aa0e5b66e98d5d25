"""Jobs with a call: the server makes it when the job is due, by the job's own schedule, and no worker gets the job."""

import asyncio
from functools import partial
from typing import Any, Final

import pytest
from standardwebhooks import Webhook

from delayqueue.answers.jobs import JobCall
from delayqueue.cli import main
from delayqueue.client import AsyncClient, Job
from delayqueue.delivery.webhook import header_text
from delayqueue.errors import Code
from tests.api_client import Json, open_api
from tests.figures import grown, scrape
from tests.processes import LOOPBACK, Processes, QueueServer, StoreServer
from tests.waiting import until, until_async

from .conftest import Shop, results
from .receiver import SECRET, Answer, Receiver

FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}


OF_A, OF_B = (f"whsec_{letter * 32}" for letter in "AB")
PRODUCER, CALLER, ONLY_CALLER, ADMIN = (
    f"{name}-of-this-test" for name in ("produces", "calls", "only", "admin")
)


async def push(shop: Shop, path: str, job_id: str = "", **options: Any) -> str:
    """Push a job that calls a path of the receiver; returns its id."""
    call = {"url": shop.receiver.url(path)} | options.pop("call", {})
    return await shop.push(job_id, call=call, **options)


async def test_a_due_job_calls_its_url(shop: Shop) -> None:
    shop.receiver.says(shop.topic, Answer(text="thanks"))
    await push(shop, shop.topic, body='{"a": 1}', delay=0.05)
    job = await shop.becomes("finished")
    assert results(job) == {"call": ("succeeded", 1, "200 thanks")}
    [call] = shop.receiver.to(shop.topic)
    assert (call.method, call.body) == ("POST", b'{"a": 1}')
    assert call.headers["Content-Type"] == "application/json"
    assert call.headers["delay-queue-topic"] == shop.topic
    assert (call.is_signed(), call.headers["delay-queue-attempt"]) == (True, "1")


@pytest.mark.parametrize("usual", [True, False], ids=["a secret for others", "none for others"])
async def test_topics_have_secrets_of_their_own(
    processes: Processes, redis_server: StoreServer, receiver: Receiver, topic: str, *, usual: bool
) -> None:
    """The official package verifies the signature."""
    secrets = {"a": OF_A, "b": OF_B} | ({"": SECRET} if usual else {})
    server = calling(
        processes,
        redis_server,
        redis_server.new_database(),
        secret=", ".join(f"{topic}.{name}={key}" if name else key for name, key in secrets.items()),
    )
    async with open_api(server.url) as api:
        for name in ("a", "b", "other"):
            shop = Shop(api, receiver, f"{topic}.{name}")
            job_id = await push(shop, shop.topic, f"{topic}-{name}-1.0 排队", body='["naïve"]')
            await shop.becomes("finished", job_id)
            [call] = receiver.to(shop.topic)
            if key := secrets.get(name, secrets.get("")):
                assert Webhook(key).verify(call.body, dict(call.headers)) == ["naïve"]
            assert ("webhook-signature" in call.headers) == bool(key)


async def test_method_and_headers_are_its_own(shop: Shop) -> None:
    headers = FORM | {"Authorization": "Bearer abc", "user-agent": "shop"}
    await push(shop, shop.topic, body="a=1&b=2", call={"method": "PUT", "headers": headers})
    await shop.becomes("finished")
    [call] = shop.receiver.to(shop.topic)
    assert (call.method, call.body) == ("PUT", b"a=1&b=2")
    assert call.headers["Authorization"] == "Bearer abc"
    assert [value for name, value in call.headers.items() if name.lower() == "content-type"] == [
        FORM["Content-Type"]
    ]
    assert call.headers["User-Agent"] == "shop"


async def test_a_get_without_a_body_has_none(shop: Shop) -> None:
    await push(shop, shop.topic, body="", call={"method": "GET"})
    await shop.becomes("finished")
    [call] = shop.receiver.to(shop.topic)
    assert (call.method, call.body, "Content-Type" in call.headers) == ("GET", b"", False)


async def test_no_answer_repeats_the_values_of_headers(shop: Shop) -> None:
    await push(shop, shop.topic, call={"headers": {"X-Key": "hush"}}, delay=3600, tags=[shop.topic])
    job = await shop.job()
    assert job["call"] == {
        "url": shop.receiver.url(shop.topic),
        "method": "POST",
        "headers": {"X-Key": "***"},
        "timeout": 30,
        "expect": "",
        "give_up": False,
    }
    [listed] = (await shop.api.call("/list", {"tag": shop.topic})).ok()["jobs"]
    assert listed["call"] == job["call"]


async def test_what_a_target_repeats_of_its_headers_is_kept_nowhere(
    shop: Shop, server: QueueServer
) -> None:
    shop.receiver.says(
        shop.topic, Answer(500, '{"sent": "Bearer hush-hush", "token": "hush-hush"}')
    )
    call = {"headers": {"Authorization": "Bearer hush-hush"}}
    await push(shop, shop.topic, call=call, retry={"delays": []})
    job = await shop.becomes("buried")
    assert job["message"] == 'call: 500 {"sent": "***", "token": "***"}'
    assert results(job)["call"][2] == '500 {"sent": "***", "token": "***"}'
    for path in ("/stats", "/buried", "/subscribers"):
        assert "hush-hush" not in str((await shop.api.call(path, {})).ok())
    assert "hush-hush" not in server.logged()


async def test_stats_tell_whom_the_servers_call_and_how_it_goes(
    processes: Processes, redis_server: StoreServer, receiver: Receiver
) -> None:
    database = redis_server.new_database()
    of_store: dict[str, Any] = {"redis__db": database, "language": "en"}
    callers: dict[str, Any] = {"calls": "yes", "call_allow": "127.0.0.0/8", "call_concurrency": 2}
    servers = [processes.server(redis_server, **of_store, **each) for each in (callers, {})]
    hold = asyncio.Event()
    receiver.says("slow", Answer(hold=hold))
    receiver.says("bad", Answer(status=500, text="no"))
    async with open_api(servers[1].url) as api, open_api(servers[0].url) as caller:

        async def is_told(**wanted: object) -> bool:
            told = (await api.call("/stats", {})).ok()
            found = told["calls"][0] if told["calls"] else {}
            troubles = [one["kind"] for one in told["troubles"]]
            also = {"waiting": told["called"], "fails": troubles == ["host"]}
            return wanted.items() <= (found | also).items()

        for number, path in enumerate(("bad", "slow", "slow", "x")):
            call = {"url": receiver.url(path)}
            job = {
                "topic": "t",
                "id": str(number),
                "ttr": 10,
                "call": call,
                "retry": {"delays": [3600]},
            }
            (await caller.call("/push", job)).ok()
            if path == "bad":
                failed = {"failed": 1, "error": "500 no", "fails": True}
                await until_async(partial(is_told, **failed, limit=2, waiting=0))
        await until_async(
            partial(is_told, host=f"{LOOPBACK}:{receiver.port}", calling=2, succeeded=0)
        )
        hold.set()
        await until_async(partial(is_told, calling=0, succeeded=3, failed=1, fails=False))
        limits = [one["call_limit"] for one in (await api.call("/stats", {})).ok()["servers"]]
        assert sorted(limits) == [0, 2]
        (await api.call("/pause", {"topic": "t"})).ok()
        (await caller.call("/push", job | {"id": "waits"})).ok()
        await until_async(partial(is_told, waiting=1))
    for server in servers:
        server.close()


async def test_a_schedule_calls_a_url(shop: Shop) -> None:
    call = {"url": shop.receiver.url(shop.topic), "headers": {"X-Key": "hush"}, "method": "PUT"}
    schedule: Json = {"name": shop.topic, "topic": shop.topic, "every": 1, "body": "tick"}
    (await shop.api.call("/schedule", schedule | {"call": call})).ok()
    await until(lambda: len(shop.receiver.to(shop.topic)) >= 2)
    change = {"name": shop.topic, "if_exists": "change"}
    (await shop.api.call("/schedule", change | {"paused": True})).ok()
    job_id = (await shop.api.call("/run-schedule", {"name": shop.topic})).ok()["id"]
    message_id = header_text(job_id)

    def is_called() -> bool:
        return message_id in [one.headers["webhook-id"] for one in shop.receiver.to(shop.topic)]

    await until(is_called)
    for one in shop.receiver.to(shop.topic):
        assert (one.method, one.body, one.headers["X-Key"]) == ("PUT", b"tick", "hush")
    (found,) = (await shop.api.call("/schedules", {"topic": shop.topic})).ok()
    assert (found["call"]["headers"], found["call"]["url"]) == ({"X-Key": "***"}, call["url"])
    refused = await shop.api.call("/schedule", change | {"call": {"url": "http://10.1.2.3/"}})
    assert "call.url: 10.1.2.3 is not a public address" in refused.refused()
    (await shop.api.call("/schedule", change | {"call": None})).ok()
    (found,) = (await shop.api.call("/schedules", {"topic": shop.topic})).ok()
    assert "call" not in found
    (await shop.api.call("/unschedule", {"name": shop.topic})).ok()


async def test_a_call_is_not_late_before_its_job_was_pushed(shop: Shop) -> None:
    before = await scrape(shop.api)
    await push(shop, shop.topic, due=0)
    await shop.becomes("finished")
    after = await scrape(shop.api)
    assert grown(before, after, "delayqueue_call_lateness_seconds_count") == 1
    assert grown(before, after, "delayqueue_call_lateness_seconds_sum") < 3600


# what follows a failure


async def test_the_end_of_the_schedule_buries_and_a_kick_calls_again(shop: Shop) -> None:
    before = await scrape(shop.api)
    shop.receiver.says(shop.topic, Answer(500, "no"), Answer(500, "no"), Answer())
    job_id = await push(shop, shop.topic, retry={"delays": [0.05]})
    job = await shop.becomes("buried")
    after = await scrape(shop.api)
    assert grown(before, after, "delayqueue_call_lateness_seconds_count") == 1, "the first call"
    assert (results(job)["call"], job["message"]) == (("failed", 2, "500 no"), "call: 500 no")
    (await shop.api.call("/kick", {"ids": [job_id]})).ok()
    await shop.becomes("finished")


@pytest.mark.parametrize(("status", "calls"), [(404, 1), (422, 1), (500, 2), (429, 2), (302, 2)])
async def test_it_can_give_up_at_once(shop: Shop, status: int, calls: int) -> None:
    shop.receiver.says(shop.topic, Answer(status, headers={"Location": shop.receiver.url("else")}))
    await push(shop, shop.topic, retry={"delays": [0.05]}, call={"give_up": True})
    await shop.becomes("buried")
    assert shop.receiver.paths == [shop.topic] * calls  # no redirect is followed


@pytest.mark.parametrize(
    ("answers", "call"),
    [
        ([Answer(410), Answer()], {}),  # which unsubscribes nobody
        ([Answer(text="fail"), Answer(text=" success\n")], {"expect": "success"}),
    ],
    ids=["410", "not the expected one"],
)
async def test_an_answer_that_means_failure_is_followed_by_another_call(
    shop: Shop, answers: list[Answer], call: Json
) -> None:
    shop.receiver.says(shop.topic, *answers)
    await push(shop, shop.topic, retry={"delays": [0.05]}, call=call)
    assert results(await shop.becomes("finished"))["call"][1] == 2


# who ends the job


async def test_one_that_waits_for_its_host_is_not_called_after_its_end(shop: Shop) -> None:
    hold = asyncio.Event()
    shop.receiver.says(shop.topic, Answer(hold=hold), Answer(hold=hold), Answer())
    ids = [await push(shop, shop.topic, f"{shop.topic}-{number}") for number in range(4)]
    await until(lambda: shop.receiver.at_once[shop.topic] == 2)

    async def are_in_hand() -> bool:
        return all([(await shop.job(job_id))["state"] == "reserved" for job_id in ids])

    await until_async(are_in_hand)
    called = {call.id for call in shop.receiver.to(shop.topic)}
    [gone, stays] = [job_id for job_id in ids if job_id not in called]
    (await shop.api.call("/delete", {"id": gone})).ok()
    hold.set()
    await shop.becomes("finished", stays)
    assert gone not in {call.id for call in shop.receiver.to(shop.topic)}


async def test_one_that_waits_for_its_host_stays_reserved(shop: Shop) -> None:
    hold = asyncio.Event()
    shop.receiver.says(shop.topic, Answer(hold=hold), Answer(hold=hold), Answer())
    ids = [await push(shop, shop.topic, f"{shop.topic}-{number}", ttr=5) for number in range(3)]
    await until(lambda: shop.receiver.at_once[shop.topic] == 2)
    await asyncio.sleep(6)  # longer than the TTR
    hold.set()
    for job_id in ids:
        assert (await shop.becomes("finished", job_id))["attempt"] == 1


# a server that stops


def calling(
    processes: Processes,
    store: StoreServer,
    database: object,
    *,
    secret: str = SECRET,
    **settings: object,
) -> QueueServer:
    return processes.server(
        store,
        None,
        redis__db=database,
        calls="yes",
        call_allow="127.0.0.1",
        call_secret=secret,
        **settings,
    )


async def test_a_server_that_stops_gives_back_what_it_has_not_called(
    processes: Processes, redis_server: StoreServer, receiver: Receiver, topic: str
) -> None:
    database = redis_server.new_database()
    one = calling(processes, redis_server, database, call_concurrency=1)
    hold = asyncio.Event()
    receiver.says(topic, Answer(hold=hold), Answer())
    async with open_api(one.url) as api:
        shop = Shop(api, receiver, topic)
        ids = [await push(shop, topic, f"{topic}-{n}", ttr=600) for n in range(2)]
        await until(lambda: receiver.at_once[topic] == 1)
    one.stop()
    two = calling(processes, redis_server, database)
    async with open_api(two.url) as api:
        for job_id in ids:
            assert (await Shop(api, receiver, topic).becomes("finished", job_id))["attempt"] <= 2


# who may


@pytest.fixture(scope="module")
def guarded(lasting_processes: Processes, redis_server: StoreServer) -> QueueServer:
    grants = [f"produce:{PRODUCER}", f"produce:{CALLER}", f"call:{CALLER}:mail.*"]
    return lasting_processes.server(
        redis_server,
        None,
        redis__db=redis_server.new_database(),
        calls="yes",
        call_allow=LOOPBACK,
        auth_tokens=", ".join([*grants, f"call:{ONLY_CALLER}", f"admin:{ADMIN}"]),
    )


async def test_a_server_makes_no_calls_unless_it_is_told_to(
    processes: Processes, redis_server: StoreServer
) -> None:
    server = processes.server(
        redis_server, None, redis__db=redis_server.new_database(), language="en"
    )
    async with open_api(server.url) as api:
        call = {"url": "http://example.com/"}
        refused = await api.push(topic="t", id="1", ttr=10, call=call)
        assert (refused.code, "calls = no" in refused.message) == (Code.FORBIDDEN, True)
        [first, second] = (
            await api.call(
                "/push",
                [
                    {"topic": "t", "id": "1", "ttr": 10, "call": call},
                    {"topic": "t", "id": "2", "ttr": 10},
                ],
            )
        ).ok()
        assert (first["code"], second["code"]) == (Code.FORBIDDEN, Code.OK)


@pytest.mark.parametrize(
    ("token", "topic", "may"),
    [
        (PRODUCER, "mail.a", False),
        (CALLER, "mail.a", True),
        (CALLER, "other", False),
        (ONLY_CALLER, "mail.a", False),
        (ADMIN, "other", True),
    ],
    ids=["produce only", "both", "both, for other topics", "call only", "admin"],
)
async def test_a_token_needs_the_role_call(
    guarded: QueueServer, token: str, topic: str, *, may: bool
) -> None:
    async with open_api(guarded.url) as api:
        job = {"topic": topic, "id": f"{token}-{topic}", "ttr": 10, "delay": 3600}
        job["call"] = {"url": f"http://{LOOPBACK}/"}
        answer = await api.call("/push", job, {"Authorization": f"Bearer {token}"})
        assert (answer.code == Code.OK) == may
        assert may or answer.code == Code.FORBIDDEN


async def test_a_listed_name_is_not_called_at_a_private_address(
    processes: Processes, redis_server: StoreServer, receiver: Receiver, topic: str
) -> None:
    """What webhooks may reach does not matter."""
    server = processes.server(
        redis_server,
        None,
        redis__db=redis_server.new_database(),
        language="en",
        calls="yes",
        call_allow="localhost",
        webhook_allow="127.0.0.0/8, ::1/128",
    )
    async with open_api(server.url) as api:
        shop = Shop(api, receiver, topic)
        call = {"url": f"http://localhost:{receiver.port}/{topic}"}
        await shop.push(call=call, retry={"delays": []})
        message = (await shop.becomes("buried"))["message"]
    assert "is not a public address and call_allow does not list it" in message
    assert receiver.calls == []


# from Python and from the command line


async def test_the_client_pushes_a_call(shop: Shop, server: QueueServer) -> None:
    async with AsyncClient(server.url) as client:
        url = shop.receiver.url(shop.topic)
        plain = await client.push(shop.topic, {"a": 1}, call=url, retain=60)
        call = {"url": url, "timeout": "2s", "headers": {"X-Key": "hush"}, "expect": "*k*"}
        await client.push_many([Job(topic=shop.topic, id="far", delay=3600, call=call)])
        await shop.becomes("finished", plain)
        found = await client.get("far")
        assert found is not None
        assert found.call == JobCall(url, "POST", {"X-Key": "***"}, 2, "*k*", give_up=False)
        [finished] = [await client.get(plain)]
        assert finished is not None
        assert finished.results[0].subscriber == "call"


async def test_the_command_pushes_a_call(shop: Shop, server: QueueServer) -> None:
    words = ["push", shop.topic, "a=1", "--id", f"{shop.topic}-job", "--retain", "60"]
    words += ["--call", shop.receiver.url(shop.topic), "--call-method", "PUT", "--call-give-up"]
    words += ["--call-header", "Content-Type: text/x-shop", "--call-header", "X-Key:hush"]
    assert await asyncio.to_thread(main, ("--url", server.url, *words)) == 0
    await shop.becomes("finished")
    [call] = shop.receiver.to(shop.topic)
    assert (call.method, call.headers["Content-Type"]) == ("PUT", "text/x-shop")
    assert call.headers["X-Key"] == "hush"
