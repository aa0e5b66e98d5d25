"""The rules of a push that need no server say what the server says."""

import json
from typing import Any

import pytest

from delayqueue.domain.push_fields import RULES, checked
from delayqueue.web.endpoints.push import PushRequest
from tests.push_cases import CASES, GOOD, VALUES, verdict


def said(fields: dict[str, Any]) -> str:
    try:
        checked(fields)
    except (TypeError, ValueError) as error:
        return str(error).partition("; there are")[0]
    return ""


@pytest.mark.parametrize("fields", CASES, ids=lambda fields: json.dumps(fields)[:80])
def test_the_rules_say_what_the_request_model_says(fields: dict[str, Any]) -> None:
    assert said(fields) == verdict(fields)


def test_every_field_of_the_model_has_a_rule_and_cases_on_both_sides_of_it() -> None:
    assert RULES.keys() == PushRequest.model_fields.keys()
    for field in RULES:
        verdicts = {bool(verdict({**GOOD, field: value})) for value in VALUES[field]}
        assert verdicts == {True, False}, field


def test_names_are_what_the_server_makes_of_them() -> None:
    found = checked({**GOOD, "topic": "\u3000t\n", "id": " a ", "tags": [" x "], "due": None})
    assert found == {"topic": "t", "id": "a", "tags": ["x"], "ttr": 60}


def test_what_json_cannot_hold_is_refused_before_anybody_sends_it() -> None:
    for number in (float("nan"), float("inf")):
        assert said({**GOOD, "delay": number}) == "delay: must be a finite number"
    assert (
        said({**GOOD, "id": "\udce9"})
        == "id: text that is not valid Unicode: the byte 0xe9 at character 1"
    )
    assert said({**GOOD, "retry": {"delays": [float("nan")]}}).startswith("retry.delays.0: must be")
