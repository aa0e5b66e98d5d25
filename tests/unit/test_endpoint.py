"""An endpoint is one declaration: it is answered, guarded and described, and its fields are checked before it runs."""

import gc
import json
from types import ModuleType
from typing import Any

import pytest
from typing_extensions import TypedDict

from delayqueue.domain.access import Grant, Role
from delayqueue.errors import Code, Invalid
from delayqueue.web.api import Api
from delayqueue.web.endpoint import BAD, CONSUMERS, PRODUCERS, Returnable, endpoint, endpoints_of
from delayqueue.web.endpoints import FAMILIES, about
from delayqueue.web.fields import JobId, Seconds
from delayqueue.web.front import Front
from delayqueue.web.http import HttpRequest
from delayqueue.web.requests import Request, TopicRequest

from .fronts import Client, front_of


class SnoozeRequest(TopicRequest):
    """A job to forget for a while."""

    id: JobId
    nap: Seconds | None = None


class Snoozed(TypedDict):
    """What was understood."""

    snoozed: str
    nap: float


@endpoint(
    "/snooze",
    PRODUCERS,
    asks={"topic": "t", "id": "1001", "nap": 1.5},
    answers={"snoozed": "t/1001", "nap": 1.5},
)
async def snooze(api: Api, asked: SnoozeRequest) -> Snoozed:  # it has no queue
    """Let a job sleep on.

    What stands here is for those who read the code.
    """
    return {"snoozed": f"{asked.topic}/{asked.id}", "nap": asked.nap or 0}


@pytest.fixture
def family() -> ModuleType:
    """A file of endpoints, like those of web/endpoints/."""
    module = ModuleType("family")
    vars(module).update(snooze=snooze, helper=len)
    return module


async def ask(
    front: Front, path: str, asked: object = None, token: str = "", method: str = "POST"
) -> Any:
    """The status, and what is answered."""
    client, headers = Client(), {"authorization": f"Bearer {token}"} if token else {}
    body = b"" if asked is None else json.dumps(asked).encode()
    await client.ask(front, HttpRequest(method, path, headers, "127.0.0.1"), body)
    [response] = client.got
    return response.status, json.loads(response.body)


async def test_a_declared_endpoint_answers(family: ModuleType) -> None:
    front = front_of(*endpoints_of([family]))
    status, answer = await ask(front, "/snooze", {"topic": " t ", "id": "1001", "nap": None})
    assert (status, answer) == (
        200,
        {"code": 0, "message": "ok", "data": {"snoozed": "t/1001", "nap": 0}},
    )
    assert (await ask(front, "/snooze", method="GET"))[0] == 405
    assert front.paths("POST") == {"/snooze"}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "topic: must not be empty"),
        ({"topic": "t"}, "id: must not be empty"),
        ({"topic": "t", "id": None}, "id: must not be empty"),
        ({"topic": "t", "id": " "}, "id: must not be empty"),
        ({"topic": "t", "id": "é" * 513}, "id: 1026 bytes, at most 1024"),
        ({"topic": "t", "id": "a", "nap": -1}, "nap -1: must be 0 to 2^31 seconds"),
        ({"topic": "", "id": 5}, "id: must be a string"),
        ([], "must be an object"),
    ],
)
async def test_its_handler_gets_valid_values_only(
    family: ModuleType, asked: object, message: str
) -> None:
    _, answer = await ask(front_of(*endpoints_of([family])), "/snooze", asked)
    assert (answer["code"], answer["message"], answer["data"]) == (Code.INVALID, message, None)


async def test_what_is_refused_is_not_kept(family: ModuleType) -> None:
    gc.collect()
    gc.disable()
    try:
        await ask(front_of(*endpoints_of([family])), "/snooze", {"topic": "t", "id": ""})
        await ask(front_of(*endpoints_of([family])), "/snooze", {"topic": "t", "id": 5})
        assert [each for each in gc.get_objects() if isinstance(each, Invalid)] == []
    finally:
        gc.enable()


async def test_it_is_guarded_by_its_roles_and_its_topic(family: ModuleType) -> None:
    grants = (
        Grant(Role.PRODUCE, "producer-0123456789", "ours*"),
        Grant(Role.CONSUME, "consumer-0123456789", "*"),
    )
    front = front_of(*endpoints_of([family]), auth_tokens=grants)
    asked = {"topic": "ours", "id": "1"}
    assert (await ask(front, "/snooze", asked))[0] == 401
    assert (await ask(front, "/snooze", asked, "consumer-0123456789"))[0] == 403
    assert (await ask(front, "/snooze", asked, "producer-0123456789"))[0] == 200
    theirs = asked | {"topic": "theirs"}
    assert (await ask(front, "/snooze", theirs, "producer-0123456789"))[0] == 403


async def test_it_is_described(family: ModuleType) -> None:
    front = front_of(*endpoints_of([family, about]))
    _, document = await ask(front, "/openapi.json", method="GET")
    described = document["paths"]["/snooze"]["post"]
    assert described["summary"] == "let a job sleep on"
    assert described["description"] == "Role: produce or admin."
    assert described["requestBody"]["content"]["application/json"]["example"] == snooze.asks
    schema = document["components"]["schemas"]["SnoozeRequest"]
    assert schema["required"] == ["topic", "id"]
    assert schema["properties"]["id"]["description"] == "Names the job, 1 to 1024 bytes."
    [nap, _null] = schema["properties"]["nap"]["anyOf"]
    assert (nap["minimum"], nap["maximum"]) == (0, 2**31)


async def test_data_that_nobody_gets_is_given_back() -> None:
    returned: list[str] = []

    @endpoint("/lend", CONSUMERS)
    async def lend(api: Api) -> Returnable[None]:  # it has no queue
        """Lend something."""
        return Returnable(None, lambda: returned.append("it"))

    request = HttpRequest("POST", "/lend", {}, "127.0.0.1")
    await Client(is_gone=True).ask(front_of(lend), request)
    assert returned == ["it"]


def test_a_handler_with_other_parameters_is_no_endpoint() -> None:
    async def handler(api: Api, body: bytes) -> None:
        """Take what it cannot have."""

    with pytest.raises(TypeError, match="handler: unknown parameters: "):
        endpoint("/x", PRODUCERS, errors=BAD)(handler)


def test_every_request_is_of_one_endpoint_or_of_a_family() -> None:
    taken = {each.takes for each in endpoints_of(FAMILIES)} - {None}
    declared = {
        each
        for family in FAMILIES
        for each in vars(family).values()
        if isinstance(each, type)
        and issubclass(each, Request)
        and each.__module__ == family.__name__
    }
    bases = {base for model in taken if model for base in model.__mro__}
    assert declared <= bases
