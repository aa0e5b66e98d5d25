"""What a request of the page would change, for the audit log."""

import json
from typing import Any

import pytest

from delayqueue.metrics import Metrics
from delayqueue.web import audit
from delayqueue.web.endpoints import ENDPOINTS
from delayqueue.web.http import HttpRequest
from delayqueue.web.parse import Reader

ENDPOINT_AT = {each.path: each for each in ENDPOINTS}


@pytest.mark.parametrize(
    ("path", "asked", "target"),
    [
        ("/topics", {"topics": ["a"]}, None),  # it changes nothing
        ("/pause", {"topic": "t", "seconds": 5}, {"topic": "t", "seconds": 5}),
        ("/kick", {"id": "a"}, {"id": "a"}),
        ("/kick", {"ids": ["a", "b"]}, {"jobs": 2, "ids": ["a", "b"]}),
        ("/kick", {"ids": list("abcde")}, {"jobs": 5, "ids": ["a", "b", "c", "…"]}),
        ("/pause", {"topic": "t", "ids": 5}, {"topic": "t"}),  # an unknown field is ignored
        ("/accept-store", {"name": "x", "reason": "y"}, {}),
    ],
)
def test_the_target_of_a_request_is_what_it_names(
    path: str, asked: dict[str, Any], target: audit.Target | None
) -> None:
    endpoint, reader = ENDPOINT_AT[path], Reader(Metrics(), strict=False)
    assert endpoint.takes
    request = HttpRequest("POST", path, {}, None)
    read = reader.read(endpoint.takes, json.dumps(asked).encode(), request)
    assert audit.target_of(endpoint, read) == target


def test_jobs_that_are_pushed_together_have_no_target() -> None:
    assert audit.target_of(ENDPOINT_AT["/push"], []) == {}
