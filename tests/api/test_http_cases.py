"""Requests, and the answers that the original server gave to them, in the order in which they were recorded."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.api_client import Envelope, open_api
from tests.processes import Processes, QueueServer

from .conftest import SETUPS, Setup, started

CASES: Final = json.loads(
    (Path(__file__).parent.parent / "compat" / "http_cases.json").read_text(encoding="utf-8")
)
DELAYS_S: Final = {"g1": 3600, "grep": 7200}
JOB_MEMBERS: Final = ["topic", "id", "delay", "ttr", "body"]


@pytest.fixture(scope="module", params=SETUPS)
def fresh_server(request: pytest.FixtureRequest, processes: Processes) -> Iterator[QueueServer]:
    """A server with no jobs: the cases build on each other and on nothing else."""
    setup: Setup = request.param
    server = started(request, processes, setup)
    yield server
    server.close()


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
async def test_a_request_is_answered_as_by_the_original(
    fresh_server: QueueServer, case: dict[str, Any]
) -> None:
    async with open_api(fresh_server.url) as api:
        answer = await api.request(
            "POST",
            case["path"],
            case["request"].encode(),
            {"Content-Type": case["content_type"]},
        )
    expected = case["response"]
    assert answer.status == case["status"]
    assert answer.code == expected["code"]
    check_data(answer, expected["data"])
    if case["compare"] == "whole response":
        assert answer.message == expected["message"]


def check_data(answer: Envelope, expected: dict[str, Any] | None) -> None:
    if expected is None:
        assert answer.data is None
        return
    assert list(answer.data)[:5] == JOB_MEMBERS
    original_members = {member: answer.data[member] for member in JOB_MEMBERS}
    due_s = original_members.pop("delay")
    assert type(due_s) is int
    assert due_s == pytest.approx(time.time() + DELAYS_S[expected["id"]], abs=60)
    assert original_members == {m: v for m, v in expected.items() if m != "delay"}
