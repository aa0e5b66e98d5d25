"""What each endpoint refuses before a queue is asked, and in which words: the front here has no queue."""

import json
import math
from typing import Any, Final

import pytest

from delayqueue.domain.outboxes import MAX_NAME_BYTES
from delayqueue.errors import Code, Text
from delayqueue.web.endpoints import ENDPOINTS
from delayqueue.web.front import Front
from delayqueue.web.http import HttpRequest
from tests.push_cases import verdict

from .fronts import Client, front_of
from .test_endpoint import ask
from .test_parse import in_one_language_each

TRACE: Final = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TOO_LONG_NAMES: Final = ("x" * 257, "é" * 128 + "x", "订" * 86, "😀" * 64 + "x", "x" * 100_000)
BAD_TIMEOUTS: Final[tuple[Any, ...]] = (-0.001, 179, 1e300, math.nan, math.inf, "1", True, [])
PUSH: Final = {"topic": "t", "id": "a", "ttr": 60}
OTHER_TRACES: Final = (
    *("x", TRACE[:-1], f"{TRACE}-more", TRACE.upper(), f"ff{TRACE[2:]}", TRACE.replace("-", "_")),
    *(f"00-{'0' * 32}-00f067aa0ba902b7-01", f"{TRACE[:36]}{'0' * 16}-01"),
)

# a field of a push, and what it cannot be
BAD_FIELDS: Final[dict[str, tuple[Any, ...]]] = {
    "delay": (-1, -0.001, 2**31 + 1, 2**63, math.nan, math.inf, "1", True, False, [1]),
    "due": (-1, 1e300, math.nan, "1", True),
    "ttr": (0, -1, 0.5, 86_401, "60", True, None),
    "id": (1, True, None, ["a"], " ", *(name * 4 for name in TOO_LONG_NAMES)),
    "topic": (1, None, ["a"], "\u3000", "", "a,b", ",", "a,", ",a", *TOO_LONG_NAMES),
    "body": (1, {"a": 1}, ["a"], False),
    "expire": (0, 0.0004),
    "if_exists": ("",),
    "max_wait": (0, 0.0004, "10m", True),
    "retry": ({"max": 0},),
    "priority": (-1, 2**32, 1.5, "1", True, [1]),
    "group": ("", " ", "x" * 251, "é" * 126, "😀" * 63, 7, ["a"], True),
    "idempotency_key": ("", "x" * 257, 7, [7]),
    "traceparent": OTHER_TRACES,
}
GOOD_FIELDS: Final[tuple[dict[str, Any], ...]] = (
    *({"delay": delay} for delay in (0, 0.0, 2**31, 86_400.5, 1e3, None)),
    *({"due": due} for due in (0, 1.5, None)),
    *({"ttr": 1}, {"ttr": 86_400}, {"body": None}, {"delay": None, "due": 1}),
    *({"topic": " " + "x" * 256 + "\t"}, {"id": " " + "😀" * 256}, {"priority": 2**32 - 1}),
)

# endpoint, request, and how the message begins
REFUSALS: Final[list[tuple[str, dict[str, Any], str]]] = [
    ("/push", {"id": "a", "ttr": 1}, "topic: must not be empty"),
    ("/push", {"topic": "t", "ttr": 1}, "id: must not be empty"),
    ("/push", PUSH | {"ttr": 0}, "ttr 0: must be 1 to 86400"),
    ("/push", PUSH | {"delay": -1}, "delay -1: must be 0 to 2^31"),
    ("/push", PUSH | {"topic": "a,b"}, "topic: no comma"),
    ("/push", PUSH | {"due": 1, "delay": 1}, "delay and due exclude each other"),
    ("/push", PUSH | {"group": " "}, "group: must not be empty"),
    ("/push", PUSH | {"group": "x" * 251}, "group: 251 bytes, at most 250"),
    ("/push", PUSH | {"max_wait": 9, "if_exists": "keep"}, "max_wait needs if_exists = replace"),
    ("/push", PUSH | {"id": " * ", "idempotency_key": "k"}, "idempotency_key needs an id"),
    ("/pop", {"topic": ",,"}, "topic: only commas"),
    *(
        ("/touch", {"id": "a", "progress": wrong}, "progress")
        for wrong in (-1, 100.5, "40", True, math.nan)
    ),
    ("/touch", {"id": "a", "message": 7}, "message: must be a string"),
    ("/pop", {"topic": " , ,"}, "topic: only commas"),
    ("/pop", {"topic": " "}, "topic: must not be empty"),
    ("/pop", {"topic": ",".join(f"t{n}" for n in range(65))}, "topic: 65 topics, at most 64"),
    *(("/pop", {"topic": name}, "topic") for name in TOO_LONG_NAMES),
    *(("/pop", {"topic": f"t,{name}"}, "topic") for name in TOO_LONG_NAMES),
    *(("/pop", {"topic": "t", "count": n}, "count") for n in (0, -1, 1001, 2**63, 1.5, "1", True)),
    ("/pop", {"topic": "t", "count": 0}, "count 0: must be 1 to 1000"),
    *(("/pop", {"topic": "t", "timeout": s}, "timeout") for s in BAD_TIMEOUTS),
    ("/pop", {"topic": "t", "timeout": -1}, "timeout -1: must be 0 to 178"),
    ("/get", {}, "id: must not be empty"),
    ("/get", {"ids": []}, "ids"),
    ("/get", {"id": "a", "timeout": -1}, "timeout"),
    ("/get", {"id": "a", "timeout": 181}, "timeout"),
    ("/get", {"id": "a", "timeout": "5"}, "timeout"),
    ("/get", {"ids": ["a", "b"], "timeout": 1}, "timeout"),
    *(
        (path, {"ids": ids}, "")
        for path in ("/get", "/finish", "/delete")
        for ids in ("x", 1, {"a": "b"}, [1], [None], [""], ["ok", "x" * 1025], ["a"] * 1001)
    ),
    *(
        (path, {"id": name * 4}, "id")
        for path in ("/get", "/finish", "/delete")
        for name in TOO_LONG_NAMES
    ),
    *(
        (path, asked, "")
        for path in ("/finish", "/delete")
        for asked in (
            {"ids": ["a", "b"], "receipts": ["x"]},  # one is missing
            {"ids": ["a"], "receipts": []},  # all are missing
            {"ids": ["a"], "receipts": "x"},
            {"ids": ["a"], "receipts": [None]},
            {"ids": ["a"], "receipt": "x"},
            {"id": "a", "receipts": ["x"]},
        )
    ),
    *(
        (path, {"ids": ["a", "b"], "receipts": ["", "1-x"]}, "receipts.1: not a receipt of")
        for path in ("/finish", "/delete")
    ),
    ("/cancel", {}, "tag: must be given; /delete cancels by id"),
    ("/cancel", {"tag": "t", "topic": ""}, "topic"),
    ("/reschedule", {"tag": "t"}, "give one of delay, due, by, or a priority"),
    ("/reschedule", {"tag": "t", "by": 1, "delay": 0}, "by"),
    ("/reschedule", {"id": "a", "by": 1, "due": 5}, "by"),
    ("/reschedule", {"id": "a", "by": 2**31 + 1}, "by"),
    ("/reschedule", {"id": "a", "by": -(2**31) - 1}, "by"),
    ("/reschedule", {"id": "a", "delay": 1, "priority": -1}, "priority"),
    ("/reschedule", {"tag": "t", "id": "a", "delay": 1}, "tag"),
    ("/reschedule", {"tag": " ", "delay": 1}, "tag"),
    ("/reschedule", {"topic": "t", "delay": 1}, "topic"),
    ("/reschedule", {"id": "a", "ids": ["a"], "delay": 1}, "id and ids exclude each other"),
    ("/kick", {"tag": "t", "ids": ["a"]}, "tag"),
    ("/kick", {"tag": "t", "count": 5}, "count: goes with topic, without tag"),
    ("/kick", {"tag": "t", "topic": "t", "count": 5}, "count: goes with topic, without tag"),
    ("/kick", {"id": "a", "count": 5}, "count: goes with topic"),
    ("/kick", {"ids": ["a", "b"], "count": 5}, "count: goes with topic"),
    ("/push", PUSH | {"delay": 10**9}, "delay 1000000000: more than a year; send a unix time as"),
    ("/release", {"id": "a", "delay": 10**9}, "delay 1000000000: more than a year; give seconds"),
    (
        "/release",
        {"id": "a", "fallback": 10**9},
        "fallback 1000000000: more than a year; give seconds",
    ),
    ("/workers", {"topic": "t"}, "topic: unknown field; this request has none"),
    ("/kick", {"tag": "t", "state": "ready"}, "state"),
    ("/kick", {"topic": "t", "state": "ready"}, "state 'ready': must be one of buried, delayed"),
    ("/kick", {"id": "a", "state": "buried"}, "state"),
    ("/kick", {"ids": ["a"], "body": "b"}, "body"),
    ("/kick", {"topic": "t", "body": "b"}, "body"),
    ("/kick", {"tag": "t", "body": "b"}, "body"),
    ("/kick", {"id": "a", "body": 5}, "body"),
    *(
        (path, {"topic": "t"} | ends, "")
        for path in ("/list", "/take")
        for ends in (
            *({"start": 1, "after": 1}, {"end": 1, "before": 1}, {"start": 2, "end": 1}),
            *({"after": 1, "before": 1}, {"after": -1}, {"before": 10**10 + 1}, {"after": "1"}),
        )
    ),
    ("/list", {"topic": "t", "limit": 0}, "limit"),
    ("/list", {"topic": "t", "state": ""}, "state"),
    ("/forecast", {"start": 0, "end": 10, "step": 0.0001}, "step"),
    ("/find", {"topic": "t"}, "give id"),
    ("/buried", {"topic": "t", "start": 1, "steps": 3}, "give start, step and steps together"),
    ("/note", {"reason": "r", "text": "x" * 501}, "text"),
    ("/note", {"reason": "r" * 201}, "reason"),
    ("/topics", {"limit": 0}, "limit"),
    ("/topics", {"limit": 1001}, "limit"),
    ("/topics", {"topics": [""]}, "topic"),
    ("/topics", {"match": 5}, "match"),
    ("/accept-store", {"confirm": True}, "confirm: unknown field; this request has none"),
    ("/pause", {"topic": "a,b"}, "topic: no comma"),
    ("/pause", {"topic": "t", "seconds": 0}, "seconds"),
    ("/pause", {"topic": "t", "seconds": 0.0001}, "seconds"),
    ("/purge", {"topic": "t", "state": ""}, "state"),
    ("/limit", {"topic": "a,b", "rate": 1}, "topic: no comma"),
    ("/limit", {"topic": "t", "rate": 0}, "rate"),
    ("/limit", {"topic": "t", "rate": -1}, "rate"),
    ("/limit", {"topic": "t", "rate": 100_001}, "rate"),
    ("/limit", {"topic": "t", "rate": "fast"}, "rate"),
    ("/limit", {"topic": "t", "rate": True}, "rate"),
    ("/limit", {"topic": "t", "rate": 5, "burst": 0}, "burst"),
    ("/limit", {"topic": "t", "rate": 5, "burst": 1.5}, "burst"),
    ("/limit", {"topic": "t", "concurrency": 0}, "concurrency"),
    ("/limit", {"topic": "t", "concurrency": "2"}, "concurrency"),
    ("/limit", {"topic": "t", "buried_to": "a,b"}, "buried_to"),
    ("/limit", {"topic": "t", "max_jobs": 0}, "max_jobs: must be 1 to 1000000000"),
    ("/limit", {"topic": "t", "max_jobs": "9"}, "max_jobs"),
    ("/limit", {"topic": "t", "when_full": "drop_newest"}, "when_full"),
    ("/limit", {"topic": "t", "buried_retain": 0}, "buried_retain 0: must be at least 0.001 sec"),
    ("/limit", {"topic": ""}, "topic"),
    ("/limit", {"topic": None}, "topic"),
    ("/whoami", {"outbox": {"name": ""}}, "outbox.name"),
    ("/whoami", {"outbox": {"name": "x" * (MAX_NAME_BYTES + 1)}}, "outbox.name"),
    ("/whoami", {"outbox": {"name": "a", "failed": -1}}, "outbox.failed"),
    ("/whoami", {"outbox": {"name": "a", "oldest_age": -1}}, "outbox.oldest_age"),
    *(
        ("/pop", {"topic": "t", "worker": worker}, begins)
        for worker, begins in (
            ("w", "worker"),
            ([], "worker"),
            ({}, "worker.name"),
            ({"name": ""}, "worker.name"),
            ({"name": 5}, "worker.name"),
            ({"name": "排" * 86}, "worker.name: 258 bytes, at most 256"),
            ({"name": "w" * 10_240}, "worker.name: 10240 bytes, at most 256"),
            ({"name": "w\nx"}, "worker.name 'w\\nx': no control characters"),
            ({"name": "w\u202e"}, "worker.name"),
            ({"name": "w", "host": "h\x1b[1m"}, "worker.host"),
            ({"name": "w", "version": "1" * 65}, "worker.version"),
            ({"name": "w", "host": "h" * 257}, "worker.host"),
            ({"name": "w", "host": None, "pid": "1"}, "worker.pid"),
            ({"name": "w", "pid": -1}, "worker.pid"),
            ({"name": "w", "pid": 2**32}, "worker.pid"),
            ({"name": "w", "concurrency": 1.5}, "worker.concurrency"),
            ({"name": "w", "concurrency": 100_001}, "worker.concurrency"),
        )
    ),
    *(
        ("/schedule", {"name": "n", "topic": "t", "every": 1} | fields, begins)
        for fields, begins in (
            ({"name": ""}, "name: must have 1 to 128 bytes"),
            ({"topic": ""}, "topic: must not be empty"),
            ({"topic": "a,b"}, "topic: no comma"),
            ({"every": None}, "give one of cron, every"),
            ({"cron": "* * * * *"}, "give one of cron, every"),
            ({"tz": "Asia/Shanghai"}, "tz: is only for cron; every is counted from 1970 in UTC"),
            ({"tz": ""}, "tz"),
            ({"every": 0}, "every"),
            ({"every": 0.5}, "every: must be 1 to 31622400 seconds"),
            ({"every": "often"}, "every: 'often': must be seconds or a text"),
            ({"every": None, "cron": "* * *"}, "cron: Wrong number of fields: must be like 30 9"),
            ({"every": None, "cron": "61 * * * *"}, "cron: Bad minute: must be like 30 9 * * MON"),
            ({"every": None, "cron": "0 0 31 2 *"}, "cron: Bad day-of-month"),
            ({"tz": "Mars/Olympus"}, "tz: must be a time zone such as Asia/Shanghai or UTC"),
            ({"ttr": 0}, "ttr 0: must be 1 to 86400 seconds"),
            ({"catch_up": "maybe"}, "catch_up 'maybe': must be one of skip, once, all"),
            ({"catch_up": ""}, "catch_up"),
            ({"if_exists": "maybe"}, "if_exists 'maybe': must be one of"),
        )
    ),
    *(
        ("/subscribe", {"name": "n", "topic": "t", "url": "http://h/x"} | fields, begins)
        for fields, begins in (
            ({"name": ""}, "name: must have 1 to 128 bytes"),
            ({"name": None}, "name: must have 1 to 128 bytes"),
            ({"name": "x" * 129}, "name: must have 1 to 128 bytes"),
            ({"topic": None}, "topic: must not be empty"),
            ({"topic": "a,b"}, "topic: no comma, it separates the topics of a pop"),
            ({"url": None}, "url: must be http[s]://HOST[:PORT][/PATH], at most 2048 characters"),
            ({"url": "ftp://h/"}, "url: must be http[s]://HOST"),
            ({"url": "http://"}, "url: must be http[s]://HOST"),
            ({"url": "http://h:99999/"}, "url: must be http[s]://HOST"),
            ({"url": "http://[::1/"}, "url: must be http[s]://HOST"),
            (
                {"url": "http://h/a b"},
                "url: has ' ', which a request cannot hold: write it percent-",
            ),
            ({"url": "http://h/\r\nX: y"}, "url: has '\\r', which a request cannot hold"),
            ({"url": "http://h/#top"}, "url: has '#', which a request cannot hold"),
            ({"url": "http://h/" + "x" * 2048}, "url: must be http[s]://HOST"),
            ({"order": 1_000_001}, "order 1000001: must be -1000000 to 1000000"),
            ({"order": "1"}, "order: must be an integer"),
            ({"timeout": 0}, "timeout: must be more than 0 and at most 300 seconds"),
            ({"timeout": 301}, "timeout: must be more than 0 and at most 300 seconds"),
            ({"timeout": "6m"}, "timeout: must be a number"),
            ({"retry": {"delays": [1] * 65}}, "retry: 65 steps: must be at most 64"),
            ({"method": "HEAD"}, "method 'HEAD': must be one of POST, PUT, PATCH, DELETE, GET"),
            ({"headers": {"Host": "x"}}, "headers: Host is set by the server"),
            ({"headers": {"A": "b\nC: d"}}, "headers: the value of A must be visible ASCII"),
            ({"expect": " "}, "expect: must have 1 to 256 characters, as success or *success*"),
            ({"on_failure": "go"}, "on_failure 'go': must be one of bury, continue"),
            ({"payload": "all"}, "payload 'all': must be one of body, event"),
            ({"retry": {"preset": "visa"}}, "retry: 'visa': must be one of alipay, wechat"),
            ({"concurrency": 0}, "concurrency 0: must be 1 to 1000"),
            ({"secret": "hunter2"}, "secret: must be whsec_ and then 24 to 64 bytes as base64"),
            ({"secret": "whsec_c2hvcnQ="}, "secret: must be whsec_ and then 24 to 64 bytes"),
            ({"secret": "whsec_*"}, "secret: must be whsec_ and then 24 to 64 bytes as base64"),
            ({"if_exists": "maybe"}, "if_exists 'maybe': must be one of replace, keep, fail"),
            ({"secret": ""}, "secret"),
        )
    ),
    *(
        ("/push", PUSH | {"retry": retry}, begins)
        for retry, begins in (
            ({"delays": [1] * 65}, "retry"),
            ({"delays": ["soon"]}, "retry"),
            ({"preset": "paypal"}, "retry"),
            ({"max": 100}, "retry"),
            ({"max": 3, "factor": 0}, "retry"),
            ({"max": 3, "jitter": 2}, "retry"),
            ({"preset": "alipay", "jitter": 0.5}, "retry: jitter goes with max"),
            ({"delays": [1], "cap": "1m"}, "retry: cap goes with max"),
        )
    ),
    ("/preview-schedule", {"cron": "30 1 * * *", "every": 60}, "give one of cron, every"),
]


@pytest.fixture(scope="module")
def front() -> Front:
    return front_of(*ENDPOINTS)


@pytest.mark.parametrize(("path", "asked", "begins"), REFUSALS, ids=lambda each: str(each)[:60])
async def test_a_request_that_cannot_be_is_refused_with_what_is_wrong_in_each_language(
    front: Front, path: str, asked: dict[str, Any], begins: str
) -> None:
    said = []
    for language in ("zh", "en"):
        client, body = Client(), json.dumps(asked).encode()
        request = HttpRequest("POST", path, {"accept-language": language}, "127.0.0.1")
        await client.ask(front, request, body)
        answer = json.loads(client.got[-1].body)
        assert (answer["code"], answer["data"]) == (Code.INVALID, None)
        said.append(answer["message"])
    assert said[1].startswith(begins)
    assert in_one_language_each(Text(*said)), said


@pytest.mark.parametrize(
    "fields", [{name: value} for name, bad in BAD_FIELDS.items() for value in bad], ids=repr
)
async def test_a_bad_field_of_a_push_is_named(front: Front, fields: dict[str, Any]) -> None:
    _, answer = await ask(front, "/push", PUSH | fields)
    assert answer["code"] == Code.INVALID
    assert next(iter(fields)) in answer["message"]


@pytest.mark.parametrize("fields", GOOD_FIELDS, ids=lambda fields: repr(fields)[:60])
def test_the_last_value_that_a_field_of_a_push_can_have_is_taken(fields: dict[str, Any]) -> None:
    assert verdict(PUSH | fields) == ""
