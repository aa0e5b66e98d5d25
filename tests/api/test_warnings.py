"""What a client hardly means, such as a misspelt field or a unix time as delay, is reported; `strict` refuses it."""

import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import pytest

from tests.api_client import EXISTS, INVALID, Api, open_api
from tests.processes import Processes, StoreServer

UNKNOWN: Final = "X-Delayqueue-Unknown-Fields"
OTHER: Final = "X-Delayqueue-Other-Topics"
LONG: Final = "X-Delayqueue-Long-Delay"
YEAR_S: Final = 366 * 86_400


@pytest.fixture(scope="module")
def strict_url(processes: Processes, redis_server: StoreServer) -> str:
    return processes.server(redis_server, strict="yes", language="en").url


@pytest.fixture
async def strict_api(strict_url: str) -> AsyncIterator[Api]:
    async with open_api(strict_url) as client:
        yield client


JOB: Final = {"topic": "warnings", "id": "warnings", "ttr": 60}


@pytest.mark.parametrize(
    ("path", "asked", "named"),
    [
        ("/push", JOB | {"dely": 5}, "dely"),
        ("/push", JOB | {"retry": {"preset": "wechat", "jiter": 1}, "x": 1}, "x, retry.jiter"),
        ("/push", JOB | {"a,b\r\nC: d": 1, "延": 2}, "a%2Cb%0D%0AC%3A%20d, %E5%BB%B6"),
        ("/push", {"topic": "warnings", "idd": "warnings", "ttr": 60}, "idd"),
        ("/pop", {"topic": "warnings", "wait": 0, "timeout": 0}, "wait"),
        ("/finish", {"id": "warnings", "reciept": "r"}, "reciept"),  # codespell:ignore
        ("/cancel", {"tag": "warnings", "topics": ["a"]}, "topics"),
        ("/topics", {"limits": 1}, "limits"),
        ("/subscribe", {"name": "n", "retry": {"max": 1, "y": 1}}, "retry.y"),
    ],
)
async def test_an_unknown_field_is_named_in_the_answer(
    api: Api, path: str, asked: dict[str, Any], named: str
) -> None:
    assert (await api.call(path, asked)).headers[UNKNOWN] == named


async def test_the_names_in_the_header_have_an_end(api: Api, topic: str) -> None:
    fields = {f"{number}-{'界' * 1000}": number for number in range(500)}
    answer = await api.push(topic=topic, id=topic, **fields)
    answer.ok()
    assert 0 < len(answer.headers[UNKNOWN]) <= 1000


async def test_the_jobs_of_an_array_share_one_header(api: Api, topic: str) -> None:
    jobs = [{"topic": topic, "id": f"{topic}-{n}", "dely": n, f"x{n % 2}": 1} for n in range(5)]
    answer = await api.push_all(jobs)
    assert {one["code"] for one in answer.ok()} == {0}
    assert answer.headers[UNKNOWN] == "dely, x0, x1"


async def test_a_request_without_a_warning_has_no_header(api: Api, topic: str) -> None:
    # on the same connection, after a request that had some
    (await api.push(topic=topic, id=topic, dely=1)).ok()
    answer = await api.push(topic=topic, id=topic, delay=YEAR_S, retry={"preset": "wechat"})
    answer.ok()
    assert not {UNKNOWN, LONG} & set(answer.headers)


@pytest.mark.parametrize("path", ["/push", "/reschedule", "/release"])
async def test_a_unix_time_as_delay_is_told(api: Api, topic: str, path: str) -> None:
    (await api.push(topic=topic, id=topic)).ok()
    if path == "/release":
        (await api.pop(topic)).ok()
    delay_s = int(time.time()) + 60
    asked = {"topic": topic, "ttr": 60} if path == "/push" else {}
    answer = await api.call(path, asked | {"id": topic, "delay": delay_s})
    answer.ok()
    assert answer.headers[LONG] == str(delay_s)
    assert UNKNOWN not in answer.headers


async def test_warnings_are_counted(api: Api, topic: str) -> None:
    async def counted() -> dict[str, float]:
        async with api.session.get(f"{api.url}/metrics") as response:
            lines = (await response.text()).splitlines()
        rows = [line for line in lines if line.startswith("delayqueue_request_warnings_total{")]
        return {row.split('warning="')[1].split('"')[0]: float(row.split()[-1]) for row in rows}

    before = await counted()
    await api.push(topic=topic, id=topic, dely=1, delay=YEAR_S + 1)
    await api.push_all([{"topic": topic, "id": topic, "dely": 1}, {"topic": topic, "id": topic}])
    after = await counted()
    assert {name: after[name] - before[name] for name in after} == {
        "unknown_field": 2,
        "long_delay": 1,
        "other_topic": 0,
    }
    for other in ("a", "b"):
        await api.push(topic=f"{topic}-{other}", id=topic)
    assert (await counted())["other_topic"] == after["other_topic"] + 2


@pytest.mark.parametrize(
    ("path", "asked", "said"),
    [
        ("/push", {"dely": 5}, "dely: unknown field; did you mean delay?"),
        ("/push", {"Dely": 5}, "Dely: unknown field; did you mean delay?"),
        ("/push", {"colour": 5}, "colour: unknown field; there are topic, id, delay"),
        (
            "/push",
            {"retry": {"max": 3, "jiter": 1}},
            "retry.jiter: unknown field; did you mean retry.jitter?",
        ),
        ("/push", {"retry": {"max": 3, "x": 1}}, "retry.x: unknown field; there are retry.delays"),
        ("/push", {"delay": 1795217037}, "delay 1795217037: more than a year; send a unix time"),
        ("/cancel", {"tag": "t", "topc": "t"}, "topc: unknown field; did you mean topic?"),
    ],
)
async def test_strict_refuses_what_a_client_can_hardly_mean(
    strict_api: Api, topic: str, path: str, asked: dict[str, Any], said: str
) -> None:
    known = {"topic": topic, "id": topic, "ttr": 60} if path == "/push" else {}
    assert (await strict_api.call(path, known | asked)).refused(INVALID).startswith(said)
    assert (await strict_api.get(topic)).ok() is None


async def test_strict_refuses_one_job_of_an_array_alone(strict_api: Api, topic: str) -> None:
    jobs = [
        {"topic": topic, "id": f"{topic}-{n}", **({"x": 1} if n == 1 else {})} for n in range(3)
    ]
    assert [one["code"] for one in (await strict_api.push_all(jobs)).ok()] == [0, INVALID, 0]


async def test_strict_takes_what_is_right(strict_api: Api, topic: str) -> None:
    (await strict_api.push(topic=topic, id=topic, retry={"preset": "alipay"})).ok()
    (await strict_api.call("/push", {"Topic": topic, "Id": "Go", "TTR": 60})).ok()
    assert len((await strict_api.pop(topic, count=9)).ok()) == 2


async def test_the_topic_from_which_a_push_takes_an_id_is_named(api: Api, topic: str) -> None:
    """In each state: tests/store/test_push.py."""
    for _ in range(2):
        answer = await api.push(topic=topic, id=topic)
        assert OTHER not in answer.headers
    answer = await api.push(topic=f"{topic}-b", id=topic)
    answer.ok()
    assert answer.headers[OTHER] == topic
    assert (await api.get(topic)).ok()["topic"] == f"{topic}-b"


@pytest.mark.parametrize(("if_exists", "code"), [("keep", 0), ("fail", EXISTS)])
async def test_the_topic_that_keeps_the_id_is_named(
    api: Api, topic: str, if_exists: str, code: int
) -> None:
    (await api.push(topic=topic, id=topic)).ok()
    answer = await api.push(topic=f"{topic}-b", id=topic, if_exists=if_exists)
    assert (answer.code, answer.headers[OTHER]) == (code, topic)
    assert (await api.get(topic)).ok()["topic"] == topic


async def test_the_other_topics_of_an_array_share_one_header(api: Api, topic: str) -> None:
    ids = [f"{topic}-{n}" for n in range(3)]
    await api.push_all([{"topic": f"{topic}-{n % 2}", "id": one} for n, one in enumerate(ids)])
    answer = await api.push_all([{"topic": f"{topic}-1", "id": one} for one in [*ids, f"{topic}x"]])
    assert {one["code"] for one in answer.ok()} == {0}
    assert answer.headers[OTHER] == f"{topic}-0"


@pytest.mark.parametrize("if_exists", ["replace", "keep", "fail"])
async def test_strict_takes_no_id_from_another_topic(
    strict_api: Api, topic: str, if_exists: str
) -> None:
    (await strict_api.push(topic=topic, id=topic)).ok()
    before = (await strict_api.get(topic)).ok()
    asked = {"topic": f"{topic}-b", "id": topic, "if_exists": if_exists}
    answer = await strict_api.push(**asked)
    assert answer.refused(EXISTS) == f"topic '{topic}' has a job with this id"
    assert answer.headers[OTHER] == topic
    [one, other] = (await strict_api.push_all([asked, {"topic": topic, "id": f"{topic}-c"}])).ok()
    assert (one["code"], one["message"]) == (EXISTS, f"topic '{topic}' has a job with this id")
    assert other["code"] == 0
    assert (await strict_api.get(topic)).ok() == before
    (await strict_api.push(topic=topic, id=topic)).ok()


async def test_strict_refuses_an_id_twice_in_one_array(strict_api: Api, topic: str) -> None:
    jobs = [{"topic": f"{topic}-{n}", "id": topic} for n in range(2)]
    assert [one["code"] for one in (await strict_api.push_all(jobs)).ok()] == [0, EXISTS]
    assert (await strict_api.get(topic)).ok()["topic"] == f"{topic}-0"


@pytest.mark.parametrize("spell", [str.upper, str.title], ids=["upper", "title"])
async def test_the_originals_endpoints_take_keys_in_any_case(
    api: Api, topic: str, spell: Callable[[str], str]
) -> None:
    async def call(path: str, **fields: object) -> Any:
        answer = await api.call(path, {spell(name): value for name, value in fields.items()})
        assert UNKNOWN not in answer.headers
        return answer.ok()

    await call("/push", topic=topic, id=topic, ttr=60, body="x", delay=0, retry={"Max": 3})
    assert (await call("/pop", topic=topic, timeout=10))["body"] == "x"
    assert (await call("/get", id=topic))["ttr"] == 60
    await call("/finish", id=topic)
    await call("/delete", id=topic)
    assert (await api.get(topic)).ok() is None


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        ('"body": "first", "Body": "last"', "last"),
        ('"Body": "first", "body": "last"', "last"),
        ('"BODY": "first", "Body": "last"', "last"),
        ('"Body": "first", "body": null', "first"),
        ('"body": "first", "Body": null', "first"),
    ],
)
async def test_of_several_spellings_the_last_value_counts(
    api: Api, topic: str, fields: str, body: str
) -> None:
    job = f'{{"topic": {json.dumps(topic)}, "id": "{topic}", "ttr": 60, {fields}}}'
    (await api.request("POST", "/push", job.encode())).ok()
    assert (await api.pop(topic)).ok()["body"] == body


async def test_a_value_of_the_wrong_type_is_named_in_any_case(api: Api, topic: str) -> None:
    answer = await api.call("/push", {"Topic": topic, "Id": 5, "TTR": 60})
    assert "id" in answer.refused(INVALID)


async def test_other_endpoints_know_their_fields_in_lower_case_only(api: Api, topic: str) -> None:
    answer = await api.call("/cancel", {"tag": topic, "Topic": topic})
    assert answer.headers[UNKNOWN] == "Topic"


@pytest.fixture(scope="module")
def drop_in_url(processes: Processes, redis_server: StoreServer) -> str:
    """The server with a config file of the original, which does not say `strict`."""
    server = processes.configured("bucket_size = 1\n", redis_server, language="en")
    server.start()
    return server.url


@pytest.fixture
async def drop_in(drop_in_url: str) -> AsyncIterator[Api]:
    async with open_api(drop_in_url) as client:
        yield client


@pytest.mark.parametrize(
    "when", [{}, {"delay": None}, {"delay": None, "due": None}, {"dealy": 1800}, {"Dealy": 1800}]
)
async def test_a_push_that_does_not_say_when_is_refused_in_place_of_the_original(
    drop_in: Api, when: dict[str, Any]
) -> None:
    job = {"topic": "drop-in", "id": "a", "ttr": 60, "body": "x"}
    message = (await drop_in.call("/push", job | when)).refused(INVALID)
    assert message.startswith("delay: must be given, 0 if it is due at once, or due")
    assert ("ealy" in message) == ("ealy" in str(when))
    several = (await drop_in.call("/push", [job | when, job | {"id": "b", "delay": 3600}])).ok()
    assert [one["code"] for one in several] == [INVALID, 0]
    assert several[0]["id"] == "a"
    assert (await drop_in.call("/get", {"id": "a"})).data is None
    (await drop_in.call("/delete", {"id": "b"})).ok()


@pytest.mark.parametrize(
    "when", [{"delay": 0}, {"Delay": 0}, {"due": 0}, {"delay": None, "due": 0}]
)
async def test_a_push_that_says_now_is_due_at_once_there(
    drop_in: Api, when: dict[str, Any]
) -> None:
    (await drop_in.call("/push", {"topic": "drop-in", "id": "a", "ttr": 60} | when)).ok()
    assert (await drop_in.call("/get", {"id": "a"})).ok()["state"] == "ready"
    (await drop_in.call("/delete", {"id": "a"})).ok()
