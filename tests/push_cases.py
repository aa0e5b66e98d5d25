"""Fields of a push, right and wrong: what the server says of each, the helpers of the outbox say, too."""

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Final

from delayqueue.config.config import Config
from delayqueue.errors import QueueError
from delayqueue.metrics import Metrics
from delayqueue.web.endpoints.push import PushRequest
from delayqueue.web.http import HttpRequest
from delayqueue.web.parse import Reader
from delayqueue.web.warnings import UNKNOWN_FIELDS

GOOD: Final[Mapping[str, Any]] = {"topic": "t", "id": "a", "ttr": 60}
PARENT: Final = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
URL: Final = "https://example.com/"
NAMES: Final = ("", "  ", " a ", "\u3000a\u3000", "\x1fa", 7, ["a"], "é" * 128)
NUMBERS: Final[tuple[Any, ...]] = (-1, 0, 0.5, 2**31, 2**31 + 1, "10m", "7", True, [], 1e30)
# each field with each of these values, instead of its own or in addition
VALUES: Final[Mapping[str, tuple[Any, ...]]] = {
    "topic": (*NAMES, "a,b", "x" * 256, "x" * 257, None),
    "id": (*NAMES, "*", "x" * 1024, "x" * 1025, None),
    "body": ("", "x", 7, ["a"], {}, None),
    "ttr": (*NUMBERS, 1, 86_400, 86_401, 999_999, 60.0, None),
    "delay": (*NUMBERS, None),
    "due": (*NUMBERS, 10**10, 10**10 + 1, 1_700_000_000_000),
    "tags": ("order:1", [], ["a"], [""], ["a", " "], ["x" * 256], ["x" * 257], ["a"] * 65, [7], {"a": 1}, [["a"]]),
    "retry": (
        "x", ["x"], [], {}, {"delays": ["x"]}, {"delays": []}, {"delays": ["15s", 2, 0.5]}, {"delays": "15s"},
        {"delays": [-1.5]}, {"delays": [1] * 64}, {"delays": [1] * 65}, {"delays": [True]}, {"delays": None, "max": 2},
        {"delays": ["1.5h", "1d", "500ms", " 2m "]}, {"delays": ["1w"]}, {"delays": ["100000d"]}, {"delays": [[1]]},
        {"preset": "alipay"}, {"preset": "wechat"}, {"preset": "x"}, {"preset": 7}, {"max": 0}, {"max": 64},
        {"max": 65},
        {"max": 2.5}, {"max": 5, "base": "2s", "factor": 3, "cap": "1m", "jitter": 0.1}, {"max": 5, "factor": 0.5},
        {"max": 5, "factor": 101}, {"max": 5, "jitter": 1.5}, {"max": 5, "base": "x"}, {"max": 5, "cap": -1.5},
        {"max": 5, "base": True}, {"max": 5, "factor": "2"}, {"max": 5, "preset": "alipay"},
        {"delays": [1], "dely": 1}, {"max": 5, "base": None, "factor": None, "cap": None, "jitter": None},
        {"preset": "alipay", "jitter": 0.5}, {"preset": "wechat", "jitter": None}, {"delays": [1], "cap": 9, "base": 1},
        {"delays": [1], "factor": 2},
    ),
    "if_exists": ("replace", "keep", "fail", "Keep", "", 7, None),
    "max_wait": (*NUMBERS, 0.001, 0.0004),
    "retain": NUMBERS,
    "expire": (*NUMBERS, 0.001, 0.0004),
    "priority": (-1, 0, 1024, 2**32 - 1, 2**32, 0.5, "7", True),
    "group": (*NAMES, "customer-7", "}", "a\0b", "x" * 250, "x" * 251, "é" * 125, "é" * 126, {}, None),
    "call": (
        URL, {}, {"url": URL}, {"url": ""}, {"url": 7}, {"url": "ftp://x/"}, {"url": "http:///x"},
        {"url": "http://u:p@example.com/"}, {"url": "http://example.com:0/"}, {"url": "http://example.com:99999/"},
        {"url": "HTTP://EXAMPLE.com:80/a?b=%20"}, {"url": "http://[::1]/"}, {"url": "http://[::1/"},
        {"url": f"http://h/{'x' * 2048}"}, {"url": URL, "method": "PUT"}, {"url": URL, "method": "put"},
        {"url": URL, "method": "HEAD"}, {"url": URL, "headers": {}}, {"url": URL, "headers": {"X-Key": "a b"}},
        {"url": URL, "headers": {"a b": "c"}}, {"url": URL, "headers": {"a": "b", "A": "b"}},
        {"url": URL, "headers": {"Host": "x"}}, {"url": URL, "headers": {"Proxy-X": "x"}},
        {"url": URL, "headers": {"a": ""}}, {"url": URL, "headers": {"a": "é"}}, {"url": URL, "headers": {"a": 7}},
        {"url": URL, "headers": {"a": "x" * 4096}}, {"url": URL, "headers": {f"a{n}": "b" for n in range(33)}},
        {"url": URL, "headers": ["a"]}, {"url": URL, "timeout": 0}, {"url": URL, "timeout": 0.001},
        {"url": URL, "timeout": 300}, {"url": URL, "timeout": 301}, {"url": URL, "timeout": "9s"},
        {"url": URL, "expect": ""}, {"url": URL, "expect": "  "}, {"url": URL, "expect": "*ok*"},
        {"url": URL, "expect": "x" * 257}, {"url": URL, "give_up": True}, {"url": URL, "give_up": 1},
        {"url": URL, "seconds": 9}, {"method": "PUT"}, [URL],
    ),
    "traceparent": ("", PARENT, PARENT.upper(), PARENT[1:], f"{PARENT}\n", f"ff{PARENT[2:]}", 7),
    "idempotency_key": ("", " ", "k", "x" * 256, "x" * 257, "é" * 129, 7),
    "dely": (1,),
}  # fmt: skip
CASES: Final[list[dict[str, Any]]] = [
    *({**GOOD, field: value} for field, values in VALUES.items() for value in values),
    {},
    {**GOOD, "delay": 5, "due": 5},
    {**GOOD, "delay": 0, "due": 5},
    {**GOOD, "id": "*", "idempotency_key": "k"},
    *({**GOOD, "max_wait": 5, "if_exists": word} for word in ("replace", "keep", "fail")),
]


# what a push needs of the server's Api
LIMITS: Final[Any] = SimpleNamespace(
    config=Config(),
    new_id=lambda: "made",
    jobs=SimpleNamespace(check_group=lambda *_: None),  # one bucket
)


def verdict(fields: Mapping[str, Any]) -> str:
    """What the server says of a push, in English, also of a field that only `strict` refuses; "" = it takes it."""
    reader, request = Reader(Metrics(), strict=False), HttpRequest("POST", "/push", {}, None)
    try:
        asked = reader.read(PushRequest, json.dumps(fields).encode(), request)
        asked.job(LIMITS)
    except QueueError as error:
        return str(error)
    unknown = (request.warnings or {}).get(UNKNOWN_FIELDS, {})
    return "".join(f"{name}: unknown field" for name in unknown)
