"""Answers: what the server writes, the client reads, whichever of the two is older."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Final

import pytest

from delayqueue import client
from delayqueue.answers.answer import LEFT_OUT
from delayqueue.answers.jobs import JobDetails, ReservedJob
from delayqueue.answers.schedules import Schedule
from delayqueue.answers.servers import Access, Stats
from delayqueue.answers.subscribers import Subscriber
from delayqueue.answers.topics import Limits
from delayqueue.client.fields import read
from delayqueue.web.endpoints.jobs import FULL
from delayqueue.web.endpoints.operations import STATS
from delayqueue.web.endpoints.reservations import RESERVED
from delayqueue.web.endpoints.schedules import SCHEDULE
from delayqueue.web.endpoints.subscribers import SUBSCRIBER
from delayqueue.web.responses import ANSWERS, as_json
from tests.processes import REPOSITORY

EXAMPLES: Final[Mapping[type[Any], Any]] = {
    JobDetails: FULL,
    ReservedJob: RESERVED,
    Schedule: SCHEDULE,
    Stats: STATS,
    Subscriber: SUBSCRIBER,
}


def test_an_answer_has_one_name_for_server_and_client() -> None:
    names = [each.__name__ for each in ANSWERS]
    assert len(set(names)) == len(names)
    public = {name: getattr(client, name) for name in client.__all__}
    found = {name for name, kind in public.items() if kind in ANSWERS}
    assert len(found) > 30
    assert {public[name].__name__ for name in found} == found


def test_php_gives_each_answer_the_same_name() -> None:
    folder = REPOSITORY / "clients" / "php" / "src" / "Answer"
    answers = {name for name in client.__all__ if getattr(client, name) in ANSWERS}
    assert {path.stem for path in folder.glob("*.php")} == answers - {"ReservedJob"}  # its is Job


@pytest.mark.parametrize(
    ("former", "name"), [("Calls", "CallCounts"), ("Result", "SubscriberResult")]
)
def test_a_former_name_can_still_be_imported(former: str, name: str) -> None:
    assert getattr(client, former) is getattr(client, name)


def as_sent(sent: Any, value: Any) -> Any:
    """The value without what was not sent, at any depth."""
    if isinstance(sent, dict):
        kept = {name: one for name, one in sent.items() if one is not LEFT_OUT}
        return {name: as_sent(one, value[name]) for name, one in kept.items()}
    if isinstance(sent, (list, tuple)):
        return [as_sent(one, other) for one, other in zip(sent, value, strict=True)]
    return value


@pytest.mark.parametrize("kind", EXAMPLES)
def test_what_the_server_writes_is_what_the_client_reads(kind: type[Any]) -> None:
    sent = EXAMPLES[kind]
    written = json.loads(as_json(sent))
    found = read(kind, written | {"new": {"in": "a later version"}})
    assert as_sent(asdict(sent), asdict(found)) == as_sent(asdict(sent), asdict(sent))
    assert found == read(kind, written)


def test_a_member_that_is_left_out_is_not_written() -> None:
    assert "traceparent" not in json.loads(as_json(RESERVED))
    assert json.loads(as_json(replace(RESERVED, traceparent="00-1")))["traceparent"] == "00-1"
    assert read(ReservedJob, json.loads(as_json(RESERVED))).traceparent == ""


@pytest.mark.parametrize(
    ("kind", "data", "member", "default"),
    [
        (Access, {"roles": [], "topics": []}, "endpoints", []),
        (
            Limits,
            {"rate": None, "burst": None, "concurrency": 1, "declared": False},
            "buried_retain",
            None,
        ),
    ],
)
def test_a_member_that_an_older_server_does_not_send_has_its_default(
    kind: type[Any], data: dict[str, Any], member: str, default: object
) -> None:
    assert getattr(read(kind, data), member) == default


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "an object was expected"),
        ({"roles": "admin", "topics": []}, "roles"),
        ({"topics": []}, "roles"),
    ],
)
def test_an_answer_of_another_shape_is_none(data: object, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        read(Access, data)
