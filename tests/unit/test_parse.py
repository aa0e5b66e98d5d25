"""The message about a request whose JSON does not fit: the field, and what it may be, in one language at a time."""

import dataclasses
import json
import re
from typing import Any, Final

import pytest

from delayqueue.domain.call import Call
from delayqueue.domain.limit import Limit
from delayqueue.domain.schedule import Schedule
from delayqueue.domain.subscriber import Subscriber
from delayqueue.errors import BadJson, Invalid, Text
from delayqueue.metrics import Metrics
from delayqueue.web.endpoints import ENDPOINTS
from delayqueue.web.endpoints.push import PushRequest
from delayqueue.web.endpoints.schedules import ScheduleRequest
from delayqueue.web.endpoints.subscribers import SubscribeRequest
from delayqueue.web.endpoints.topics import LimitRequest
from delayqueue.web.http import HttpRequest
from delayqueue.web.parse import MOST_LOGGED, Model, Reader, is_array, parse_array
from delayqueue.web.targets import CallRequest

VALUES: Final[tuple[Any, ...]] = (True, 1, 1.5, 10**30, "x", "", [], [1], [[]], {}, {"a": 1})
MODELS: Final = {each.path: each.takes for each in ENDPOINTS if each.takes}
# the least that each object in a request has
INNER: Final[dict[str, dict[str, Any]]] = {
    "retry": {"max": 2},
    "call": {"url": "http://example.com/"},
    "worker": {"name": "w"},
    "outbox": {"name": "o"},
}
SENTENCE: Final = re.compile(r"\b[A-Za-z]+ [a-z]+ [a-z]+")
CHINESE: Final = re.compile(r"[\u3000-\u9fff\uff00-\uffef]")


def parse(model: type[Model], raw: bytes) -> Model:
    reader = Reader(Metrics(), strict=False)
    return reader.read(model, raw, HttpRequest("POST", "/", {}, None))


def in_one_language_each(text: Text) -> bool:
    return bool(CHINESE.search(text.zh)) and not SENTENCE.search(text.zh) and text.en.isascii()


def refusal(path: str, asked: dict[str, Any]) -> Text | None:
    """The message about it; None if the types are right."""
    try:
        parse(MODELS[path], json.dumps(asked).encode())
    except BadJson as error:
        return error.text
    except Invalid:  # as there are no others
        return None
    return None


@pytest.mark.parametrize("path", MODELS)
def test_every_field_of_a_wrong_type_is_told_in_each_language(path: str) -> None:
    fields = MODELS[path].model_fields
    said = [
        (field, text)
        for field in fields
        for value in VALUES
        if (text := refusal(path, {field: value}))
    ]
    assert {field for field, _ in said} == set(fields)
    for field, text in said:
        assert in_one_language_each(text), text
        assert text.en.startswith(field)


@pytest.mark.parametrize("path", MODELS)
def test_null_is_the_same_as_no_value_of_every_optional_field(path: str) -> None:
    model = MODELS[path]
    optional = {name: None for name, field in model.model_fields.items() if not field.is_required()}
    assert refusal(path, optional) is None
    for name, inner in model.inner.items():
        assert refusal(path, {name: dict.fromkeys(inner.model_fields) | INNER[name]}) is None


@pytest.mark.parametrize("kind", [Call, Subscriber, Schedule, Limit])
def test_an_unknown_field_has_no_effect_whatever_its_name(kind: type[Any]) -> None:
    def given(model: type[Model], asked: dict[str, Any]) -> Model:
        names = {field.name: "x" for field in dataclasses.fields(kind)}
        unknown = {name: value for name, value in names.items() if name not in model.model_fields}
        return parse(model, json.dumps(asked | unknown).encode())

    assert given(CallRequest, INNER["call"]).call() == Call(**INNER["call"])
    assert given(SubscribeRequest, {"name": "n", "order": 1}).given() == {"name": "n", "order": 1}
    assert given(ScheduleRequest, {"name": "n", "body": "b"}).changes(9) == {"body": "b"}
    assert given(LimitRequest, {"topic": "t", "rate": 1}).changes() == {"rate": 1}


@pytest.mark.parametrize(
    ("raw", "zh", "en"),
    [
        ('{"body": 1}', "解析json失败：body 须为字符串", "body: must be a string"),
        ('{"tags": ["a", 1]}', "解析json失败：tags.1 须为字符串", "tags.1: must be a string"),
        (
            '{"delay": 1e400}',
            "解析json失败：delay 须为有限的数字",
            "delay: must be a finite number",
        ),
        (
            '{"retry": {"delays": ["1s", true], "max": "x"}}',
            "解析json失败：retry.delays.1 须为数字或字符串",
            "retry.delays.1: must be a number or a string",
        ),
        (
            '{"delay": "10m"}',
            "解析json失败：delay 须为数字，不带引号和单位",
            "delay: must be a number, without quotes or a unit",
        ),
        ("5", "解析json失败：须为对象", "must be an object"),
        (
            '{"topic":\n tru}',
            "解析json失败：第2行第5列有误",
            "not valid JSON: expected ident at line 2 column 5",
        ),
        *(
            (
                raw,
                "解析json失败：请求体为空，json_encode 是否失败了？",
                "the request is empty: did json_encode fail?",
            )
            for raw in ("", " \r\n")
        ),
        *(
            (
                raw,
                '解析json失败：请求体是表单，请发送JSON，如 {"topic": "order"}',
                'the request is a form: send JSON, such as {"topic": "order"}',
            )
            for raw in (
                "topic=order&id=1",
                "tags%5B%5D=a",
                "tags[]=a",
                '--x1\r\nContent-Disposition: form-data; name="topic"\r\n\r\norder\r\n--x1--',
            )
        ),
    ],
)
def test_a_message_names_the_field_and_what_may_stand_there(raw: str, zh: str, en: str) -> None:
    with pytest.raises(BadJson) as refused:
        parse(PushRequest, raw.encode())
    assert refused.value.text == Text(zh, en)


@pytest.mark.parametrize("blanks", [0, 1, 63, 64, 1000])
def test_an_array_is_one_behind_any_blanks(blanks: int) -> None:
    assert is_array(b" \n\t\r"[:blanks] + b" " * blanks + b'[{"id": 1}]')
    assert not is_array(b" " * blanks + b'{"id": []}')


@pytest.mark.parametrize("raw", [b"[1", b"[]", b'["\xff"]', b"{"])
def test_an_array_that_is_none_is_told_in_each_language(raw: bytes) -> None:
    with pytest.raises(BadJson) as refused:
        parse_array(raw)
    assert in_one_language_each(refused.value.text)


def logged(caplog: pytest.LogCaptureFixture, *asked: tuple[str, dict[str, Any]]) -> list[str]:
    """The lines about these requests, each by its path."""
    reader = Reader(Metrics(), strict=False)
    right = {"topic": "t", "id": "a", "ttr": 60}
    for path, fields in asked:
        raw = json.dumps(right | fields).encode()
        reader.read(PushRequest, raw, HttpRequest("POST", path, {}, None))
    return [record.getMessage() for record in caplog.records]


def test_the_log_names_each_unknown_field_once(caplog: pytest.LogCaptureFixture) -> None:
    lines = logged(
        caplog,
        ("/push", {"dely": 5}),
        ("/push", {"dely": 6, "payload": "x"}),
        ("/pop", {"dely": 7}),
        ("/push", {"retry": {"delays": [1], "jiter": 1}}),
    )
    assert [line.partition(":")[0] for line in lines] == [
        "unknown field 'dely' in requests to /push",
        "unknown field 'payload' in requests to /push",
        "unknown field 'dely' in requests to /pop",
        "unknown field 'retry.jiter' in requests to /push",
    ]


def test_the_log_names_so_many_unknown_fields_at_most(caplog: pytest.LogCaptureFixture) -> None:
    lines = logged(caplog, *(("/push", {f"{n}" + "x" * 1000: 1}) for n in range(3 * MOST_LOGGED)))
    assert len(lines) == MOST_LOGGED
    assert lines[-1].endswith("further fields are not named")
    assert max(map(len, lines)) < 250


def test_an_unknown_field_cannot_forge_a_line(caplog: pytest.LogCaptureFixture) -> None:
    (line,) = logged(caplog, ("/push", {"a\nINFO forged\x1b[2J": 1}))
    assert line.isprintable()
